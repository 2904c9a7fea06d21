"""Readers of memory amounts in logs of real runs, one for each log format."""
