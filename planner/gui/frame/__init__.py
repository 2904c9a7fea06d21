"""The parts of the window around the tabs."""
