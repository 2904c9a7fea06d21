"""Training: what a step holds, moment by moment."""
