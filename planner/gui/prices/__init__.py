"""Prices: how old they are, fresh ones on request, and offers of one's own."""
