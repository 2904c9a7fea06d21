"""Text and tables about monitored cards: readings, diagnoses with advice, faults, and recordings."""
