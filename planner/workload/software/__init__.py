"""The programs that run a workload: one record for each."""
