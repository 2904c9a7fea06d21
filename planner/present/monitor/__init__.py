"""The cards of a machine as people read them: readings, verdicts with advice, faults, and recordings."""
