"""Temporary memory of the CPU's kernels."""
