"""Accelerators, systems and models as people read them: columns of tables, details, and comparisons."""
