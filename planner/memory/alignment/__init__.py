"""Memory of preference tuning and reinforcement learning: other models, an engine, and the phases around a step."""
