"""Costs of owning hardware: purchase, running costs, resale, and the accounting view."""
