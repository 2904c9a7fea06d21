"""PyTorch's caching allocator: what it takes from a card to serve a sequence of allocations."""
