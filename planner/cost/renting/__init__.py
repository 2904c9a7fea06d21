"""Renting: offers, what one costs for a job, and all that can do it."""
