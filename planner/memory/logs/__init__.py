"""What real runs print about memory: one reader a format, and one door that recognises which it is."""
