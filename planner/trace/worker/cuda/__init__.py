"""Emulation of a CUDA build's operators on CPU tensors."""
