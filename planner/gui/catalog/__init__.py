"""The Catalog tab."""
