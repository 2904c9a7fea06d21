"""What you can run on: accelerators, systems, and the rules to name, filter and measure them."""
