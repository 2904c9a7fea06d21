"""Memory of diffusion pipelines: the phases text encoding, denoising and decoding, which run in sequence."""
