"""Tracing in the memory tab: what to trace, its progress, and what it found."""
