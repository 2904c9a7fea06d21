"""Memory of each of several cards: its share of the network, of the work, and of the training states."""
