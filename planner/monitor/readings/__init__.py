"""Measurements as plain values: quantities, cards, samples, faults and events. Nothing here performs readings."""
