"""Diagnosis of what limits a GPU, from its recent readings, by rules with published thresholds where there are any."""
