"""The parent's side of the process that talks to the driver: starting it, hearing it, and replacing it."""
