"""Usable memory of real cards, for tests."""

from planner.hardware.usable import UsableMemory


def usable(low, bytes_=None, high=None) -> UsableMemory:
    return UsableMemory(
        bytes=bytes_ or low,
        low_bytes=low,
        high_bytes=high or bytes_ or low,
        certainty="measured",
        source="s",
        explanation="e",
    )
