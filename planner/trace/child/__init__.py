"""The parent's side of the process that runs a person's code: starting it, hearing it, and saying how it ended."""
