"""Edits of a plan, and the adjustment of conflicting fields."""
