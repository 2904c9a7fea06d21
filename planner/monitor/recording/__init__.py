"""Recordings: what the monitor saw, written so that a kill loses at most a second, and read, replayed and summed up."""
