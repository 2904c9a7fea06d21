"""Requests through the scheduler of a serving engine: their traffic, the simulation, and its percentiles."""
