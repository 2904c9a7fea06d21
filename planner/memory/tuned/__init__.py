"""Training of a part of a network, of adapters beside it, or by fused kernels: what then is kept."""
