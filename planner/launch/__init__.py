"""Launch settings: a plan as files and commands of the programs that run it, and back."""
