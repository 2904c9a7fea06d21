"""GPU Planner: which GPU a model needs, and whether it fits the one you have."""

__version__ = "0.1.0"
