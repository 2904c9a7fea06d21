"""`gpu-planner serve-plan`."""
