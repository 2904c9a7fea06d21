"""Modules and inputs of a request, ready to run."""
