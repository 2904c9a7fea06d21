"""Prices from the network, on request only: fetched within limits, checked, held where they look wrong, kept apart.

Nothing here runs unless a person asks for it. What is bundled is never changed: what was fetched lies in snapshots of
the user's own, and one choice says which of both is used.
"""
