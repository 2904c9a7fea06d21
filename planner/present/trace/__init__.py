"""Text and tables about traces: the result and the timeline."""
