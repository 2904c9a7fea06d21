"""Time of a training step."""
