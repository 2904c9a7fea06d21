"""Memory-saving changes that are specific to one program."""
