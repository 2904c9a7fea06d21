"""Comparison of a plan with the log of a real run."""
