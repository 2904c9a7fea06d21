"""What a run holds at the most, the framework's overhead aside, in numbers only."""

from typing import Final, NamedTuple

from planner.memory.chance import Interval
from planner.memory.phases import Moments

_LARGE_TERMS: Final = ("logits", "activations")


class Need(NamedTuple):
    """The most bytes of all moments with their bounds, and the largest short-lived tensor."""

    held: Interval
    largest: int


def need_of(moments: Moments) -> Need:
    """Return what `moments` hold at the most."""
    held = Interval(moments.low(), moments.peak().total, moments.high())
    return Need(held, _largest_tensor(moments))


def _largest_tensor(moments: Moments) -> int:
    """Return the largest short-lived tensor of all moments: what the prefill left behind is there in decoding too.

    An engine that reserves everything at the start has none.
    """
    if not moments.dynamic:
        return 0
    largest = 0
    for moment in moments.moments:
        for term in moment.terms:
            if term.bytes > largest and term.name in _LARGE_TERMS:
                largest = term.bytes
    return largest
