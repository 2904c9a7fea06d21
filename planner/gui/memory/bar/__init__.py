"""Stacked bar with the memory terms, drawn to scale against the card."""
