"""Training of adapters or of part of a network: the trained tensors, and the activations that layers then save."""
