"""GPUs that NVIDIA's driver does not report: one module for each interface by which a system shows them."""
