"""The terms to scale against the card."""
