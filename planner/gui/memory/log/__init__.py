"""What a real run printed, beside the plan's estimate."""
