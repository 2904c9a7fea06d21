"""Inputs of forms."""
