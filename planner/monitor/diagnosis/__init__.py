"""Diagnosis of what limits a card, from its recent readings, by rules with published thresholds where there are any."""
