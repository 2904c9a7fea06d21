"""Readers of diffusion pipelines in the format of the diffusers library."""
