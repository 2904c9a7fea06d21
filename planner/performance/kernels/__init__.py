"""Time of single kernels on a card: matrix products, attention, experts and collectives, from curves in the catalog."""
