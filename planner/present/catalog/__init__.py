"""Text and tables about accelerators, systems and models: table columns, details and comparisons."""
