"""Fleets: the GPUs of many machines, from Prometheus or from exporters, with our names and units."""
