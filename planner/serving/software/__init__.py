"""Scheduling of each program: what a step holds, and what a request needs to be admitted."""
