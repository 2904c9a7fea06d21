"""The time of a training step."""
