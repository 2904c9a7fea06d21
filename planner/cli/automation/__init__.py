"""Commands for scripts and shells: schemas of the JSON output, completion, and the manual page."""
