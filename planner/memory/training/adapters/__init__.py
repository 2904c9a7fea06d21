"""Training of adapters, or of a part of a network: what is trained, and what its layers then keep."""
