"""How you run it: training or inference."""
