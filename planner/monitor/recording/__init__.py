"""Recordings of the monitor: writing (a kill loses at most a second), reading, replay and summary."""
