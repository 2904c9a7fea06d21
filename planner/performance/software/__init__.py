"""The time that each program takes: its speeds, and what of a card its kernels reach."""
