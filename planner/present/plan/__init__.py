"""Text about plans: a phrase, the settings, and the preset or file that a plan started from."""
