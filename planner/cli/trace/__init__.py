"""`gpu-planner trace`: its options, target and report."""
