"""`gpu-planner monitor`: live readings of cards, and recordings."""
