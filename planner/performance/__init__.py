"""Time of a training step or a request, from a model, a workload and the GPUs it runs on."""
