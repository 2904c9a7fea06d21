"""Costs of renting: offers, quotes, and the table of all offers for a job."""
