"""Which readings come so late that others lack before them: one rule for events, gaps, plots and sums."""

from typing import Final

LATE: Final = 2.5
"""A reading may come late by so much of the usual interval."""
# Looks ten times a second are jittery: what comes sooner is never late.
_NEVER_LATE_SECONDS: Final = 1.0


def late_seconds(usual_seconds: float) -> float:
    """Return how far apart two readings are between which others lack, where they usually are `usual_seconds` apart."""
    return max(LATE * usual_seconds, _NEVER_LATE_SECONDS)
