"""Diffusion pipelines: text encoding, denoising and decoding, one phase after the other."""
