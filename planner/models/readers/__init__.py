"""Readers of model files. The only place that knows file formats."""
