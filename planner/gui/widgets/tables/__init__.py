"""Tables of records."""
