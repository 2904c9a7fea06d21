"""Operators as a CUDA build of PyTorch runs them, on the CPU's tensors."""
