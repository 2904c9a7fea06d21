"""Time behaviour of each program: its speeds, and the shares of a card that its kernels reach."""
