"""Readers of other programs' training configurations, one module per format."""
