"""Readers of models that join a vision tower and a language model."""
