"""Renting beside owning: streams of money, where they meet, and how sure the decision is."""
