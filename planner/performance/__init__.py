"""Time of a training step or a request, from a model, a workload and the cards it runs on."""
