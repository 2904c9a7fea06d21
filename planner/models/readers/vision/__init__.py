"""Readers of vision encoders, alone or as part of multimodal models."""
