"""The activations of other micro-batches, which are on their way between the stages of a pipeline.

Stages that hold the same differ in these alone, so that what they need follows from one of them.
"""

from functools import lru_cache
from typing import Final, NamedTuple

from planner.memory.chance import Interval
from planner.memory.need import Need, need_of
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
    why = f"activations of {others.micro_batches:g} more micro-batches on their way"
    return found._replace(moments=tuple([_with_activations(moment, others.bytes, why) for moment in found.moments]))


def _with_activations(moment: Moment, more: int, why: str) -> Moment:
    if moment.name not in _PASSES:
        return moment
    held: list[Held] = [resized(item, more, why) if item.name == "activations" else item for item in moment.terms]
    return Moment(moment.name, held, moment.explanation)


def need_with_others(found: Moments, others: Others) -> Need:
    """Return what `with_others` holds at the most.

    **Formula**: the larger of what is held where activations are, with those of the others, and what is held elsewhere.
    """
    if not others.bytes:
        return need_of(found)
    passes, rest, activations = _apart(found)
    more = [most + others.bytes for most in passes.held]
    held = Interval(*map(max, more, rest.held))
    return Need(held, max(activations + others.bytes, passes.largest, rest.largest))


@lru_cache(maxsize=256)
def _apart(found: Moments) -> tuple[Need, Need, int]:
    """Return what is needed where activations are and elsewhere, and the most that activations are."""
    kept = {moment: _activations(moment) for moment in found.moments}
    passes = tuple(moment for moment in found.moments if kept[moment])
    rest = tuple(moment for moment in found.moments if not kept[moment])
    return need_of(found._replace(moments=passes)), need_of(found._replace(moments=rest)), max(kept.values())


def _activations(moment: Moment) -> int:
    """Return the bytes of activations in a pass, nothing in other moments."""
    if moment.name not in _PASSES:
        return 0
    return sum([item.bytes for item in moment.terms if item.name == "activations"])
