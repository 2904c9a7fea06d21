"""Readers of safetensors checkpoints, and the stored size of a network's tensors."""
