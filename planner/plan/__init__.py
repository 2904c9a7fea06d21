"""Plans: a model, a workload and cards, with evaluation, advice, comparison and recommendation."""
