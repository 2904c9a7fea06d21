"""software."""
