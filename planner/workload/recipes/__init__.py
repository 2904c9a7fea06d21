"""The training files of other programs, read as workloads; each module knows one format."""
