"""What the machine does right now: its cards and the machine itself, and what goes wrong while asking."""
