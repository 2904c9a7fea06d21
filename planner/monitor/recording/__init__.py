"""Recordings of the monitor: written so that a kill loses at most a second, and read, replayed and summarized."""
