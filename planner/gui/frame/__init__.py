"""The parts of the window that stay whatever tab is shown."""
