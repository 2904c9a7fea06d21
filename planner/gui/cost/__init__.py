"""The Cost tab: how long, how much, rent or buy."""
