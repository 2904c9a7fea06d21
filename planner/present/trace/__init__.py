"""Traces as people read them: the answer, the timeline, and a trace beside an estimate."""
