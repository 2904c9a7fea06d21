"""Training: what a step holds, snapshot by snapshot."""
