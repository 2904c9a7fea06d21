"""Plans: a model, a workload and GPUs, with evaluation, advice, comparison and recommendation."""
