"""Measurements as plain values: quantities, GPUs, samples, faults and events. Nothing here performs readings."""
