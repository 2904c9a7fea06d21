"""Time of single kernels on a GPU: matrix products, attention, experts and collectives, from curves in the catalog."""
