"""What nobody asked for and everybody wants to know."""
