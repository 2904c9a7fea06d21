"""Prometheus exposition of the readings, and the rules and the dashboard that go with it."""
