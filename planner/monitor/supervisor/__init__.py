"""Supervision of the sampler process."""
