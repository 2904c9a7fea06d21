"""`gpu-planner gpus`: a file for each thing that it does."""
