"""Input fields of forms."""
