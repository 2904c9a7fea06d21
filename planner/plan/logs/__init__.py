"""A plan beside what a run of it printed."""
