"""Memory that the CPU's kernels hold while they run."""
