"""Serving: the simulated service of a plan, and the hardware that a service with given latencies needs."""
