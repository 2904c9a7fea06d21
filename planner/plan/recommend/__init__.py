"""Recommendation of hardware for a plan's job: all suitable GPUs, counts and offers, ranked."""
