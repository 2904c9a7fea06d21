"""Accelerators and systems: records, name resolution, queries, usable memory and power."""
