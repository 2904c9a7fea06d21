"""Import of other programs' logs as recordings: nvidia-smi, its dmon, nvtop, DCGM and amd-smi."""
