"""Inference: prompts, caches and the work of one layer."""
