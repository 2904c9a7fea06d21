"""Readers of memory amounts in logs of real runs: one per format, with automatic detection."""
