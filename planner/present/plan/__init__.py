"""Plans as people read them: a phrase for one, its settings, and where it was taken from."""
