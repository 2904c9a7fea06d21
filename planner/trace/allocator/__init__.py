"""Model of PyTorch's CUDA caching allocator."""
