"""How long: the time of a training step or of a request, from a model, a workload and the cards it runs on."""
