"""Recommendation of hardware for a plan's job: all suitable cards, counts and offers, ranked."""
