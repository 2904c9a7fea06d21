"""Time behaviour of each program: launch times, and the shares of a card's bandwidth and rates that kernels reach."""
