"""The table of terms, each of which opens."""
