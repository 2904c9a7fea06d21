"""Memory that PyTorch's autograd uses in full fine-tuning: saved activations and gradients in flight."""
