"""What would help."""
