"""The activations of other micro-batches, which are on their way between the stages of a pipeline.

Stages that hold the same differ in these alone, so that what they need follows from one of them.
"""

from functools import lru_cache
from typing import Final, NamedTuple

from planner.memory.chance import Interval
from planner.memory.need import Need, most_of, need_of
from planner.memory.parallel.shares import Held, resized
from planner.memory.phases import Moment, Moments

_PASSES: Final = ("forward", "loss", "backward")


class Others(NamedTuple):
    """So many more micro-batches, and the bytes of their activations."""

    micro_batches: float = 0.0
    bytes: int = 0


NO_OTHERS: Final = Others()


def others_of(found: Moments, in_flight: int, groups: int) -> Others:
    """Return what is on its way beside the micro-batch of `found`; `in_flight` are counted in groups of layers."""
    more = max(found.dynamic * (in_flight - groups) // groups, 0)
    return Others(in_flight / groups - 1, more) if more else NO_OTHERS


def with_others(found: Moments, others: Others) -> Moments:
    """Return `found` with the activations of `others`."""
    if not others.bytes:
        return found
    batches = "micro-batch" if others.micro_batches == 1 else "micro-batches"
    why = f"activations of {others.micro_batches:g} more {batches} on their way"
    return found._replace(moments=tuple([_with_activations(moment, others.bytes, why) for moment in found.moments]))


def _with_activations(moment: Moment, more: int, why: str) -> Moment:
    place = _place_of_activations(moment)
    if place is None:
        return moment
    held: list[Held] = [*moment.terms]
    held[place] = resized(held[place], more, why)
    return Moment(moment.name, held, moment.explanation)


def _place_of_activations(moment: Moment) -> int | None:
    """Return where the term of activations stands in a pass, or none in other moments."""
    if moment.name not in _PASSES:
        return None
    return next((place for place, item in enumerate(moment.terms) if item.name == "activations"), None)


def need_with_others(found: Moments, others: Others) -> Need:
    """Return what `with_others` holds at the most.

    **Formula**: the larger of what is held where activations are, with those of the others, and what is held elsewhere.
    """
    if not others.bytes:
        return need_of(found)
    apart, more = _apart(found), others.bytes
    passes, rest = apart.passes.held, apart.rest.held
    low, most, high = max(passes.low + more, rest.low), max(passes.bytes + more, rest.bytes), passes.high + more
    largest = max(apart.activations + more, apart.passes.largest, apart.rest.largest)
    return Need(Interval(low, most, max(high, rest.high)), largest)


class _Apart(NamedTuple):
    """What is needed where activations are, and elsewhere, and the most that activations are."""

    passes: Need
    rest: Need
    activations: int


@lru_cache(maxsize=256)
def _apart(found: Moments) -> _Apart:
    places = [_place_of_activations(moment) for moment in found.moments]
    placed = list(zip(found.moments, places, strict=True))
    return _Apart(
        most_of([moment for moment, place in placed if place is not None]),
        most_of([moment for moment, place in placed if place is None]),
        max([moment.terms[place].bytes for moment, place in placed if place is not None]),
    )
