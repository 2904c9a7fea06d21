"""The process that alone talks to the driver: what it asks, how often, and what it tells its parent."""
