"""Cards and systems side by side."""
