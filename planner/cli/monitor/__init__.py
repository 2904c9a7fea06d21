"""`gpu-planner monitor`: live cards, and recordings."""
