"""Edits of a plan, and the adjustment of other fields that an edit conflicts with."""
