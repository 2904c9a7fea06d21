"""What a run holds at the most, the framework's overhead aside, in numbers only."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from planner.memory.chance import Interval
from planner.memory.phases import PhaseSnapshots, Snapshot

_LARGE_TERMS: Final = ("logits", "activations")


class Need(NamedTuple):
    """The most bytes of all snapshots with their bounds, and the largest short-lived tensor."""

    held: Interval
    largest: int


def need_of(snapshots: PhaseSnapshots) -> Need:
    """Return what `snapshots` hold at the most; an engine that reserves everything has no short-lived tensors."""
    need = most_of(snapshots.snapshots)
    return need if snapshots.dynamic else need._replace(largest=0)


def most_of(snapshots: Iterable[Snapshot]) -> Need:
    """Return the most that any of `snapshots` holds: what a prefill left behind is the largest in decoding, too."""
    low = most = high = largest = 0
    for snapshot in snapshots:
        least = at_most = 0
        for term in snapshot.terms:
            least += term.low_bytes
            at_most += term.high_bytes
            if term.bytes > largest and term.name in _LARGE_TERMS:
                largest = term.bytes
        low, most, high = max(low, least), max(most, snapshot.total), max(high, at_most)
    return Need(Interval(low, most, high), largest)
