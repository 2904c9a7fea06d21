"""Readers of decoder-only language models."""
