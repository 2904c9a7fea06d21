"""Explanations of terms: the card of a term, its drawing, and GPU basics."""
