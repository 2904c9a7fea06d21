"""`gpu-planner gpus`: a module for each of its functions."""
