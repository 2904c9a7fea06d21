"""Fleets: the cards of many machines, read from a Prometheus or from exporters, as readings with our names and units."""
