"""Readers of a checkpoint's safetensors files: what they hold and which of it a network has."""
