"""What explains the terms of the window: the card of a term, its drawing, and GPU basics."""
