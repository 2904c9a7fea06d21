"""Tracing in the Memory tab: the module to trace, the progress of the trace, and its results."""
