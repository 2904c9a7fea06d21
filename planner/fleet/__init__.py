"""Fleets: the cards of many machines, from a Prometheus or from exporters, with our names and units."""
