"""Model architectures, and the readers that build them from model files."""
