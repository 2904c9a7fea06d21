"""Exact peak memory of any PyTorch module, without a GPU. Only `worker`, a child process, imports torch."""
