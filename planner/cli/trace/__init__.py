"""`gpu-planner trace`: its options, its target, and its report."""
