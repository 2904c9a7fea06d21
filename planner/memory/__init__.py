"""The memory estimator: pure functions from a model, a workload and a card to memory terms with their sources."""
