"""What each of several cards holds: its share of the network, of the work, and of what training keeps."""
