"""Memory of diffusion pipelines: text encoding, denoising and decoding, one phase after the other."""
