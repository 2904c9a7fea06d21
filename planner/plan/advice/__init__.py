"""What would make a plan fit: the changes, the search for them, and what each costs."""
