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
    """Return what `moments` hold at the most.

    What a prefill left behind is the largest tensor in decoding too; an engine that reserves everything has none.
    """
    low = most = high = largest = 0
    for moment in moments.moments:
        least = at_most = 0
        for term in moment.terms:
            least += term.low_bytes
            at_most += term.high_bytes
            if term.bytes > largest and term.name in _LARGE_TERMS:
                largest = term.bytes
        low, most, high = max(low, least), max(most, moment.total), max(high, at_most)
    return Need(Interval(low, most, high), largest if moments.dynamic else 0)
