"""What you want to run: architectures and the readers that make them from files."""
