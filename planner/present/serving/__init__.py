"""Simulated services as sentences, rows and series."""
