"""Logs of other programs, read as recordings: nvidia-smi, its dmon, nvtop, DCGM and amd-smi."""
