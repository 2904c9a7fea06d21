"""Readers of what the diffusers library stores: pipelines of components, each with a configuration of its own."""
