"""The activations of other micro-batches, which are on their way between the stages of a pipeline.

Stages that hold the same differ in these alone, so that what they need follows from one of them.
"""

from typing import Final, NamedTuple

from planner.memory.chance import Interval
from planner.memory.parallel.shares import Held, resized
from planner.memory.phases import Need, PhaseSnapshots, Snapshot, most_of

_PASSES: Final = ("forward", "loss", "backward")


class Others(NamedTuple):
    """So many more micro-batches, and the bytes of their activations."""

    micro_batches: float = 0.0
    bytes: int = 0


NO_OTHERS: Final = Others()


def others_of(found: PhaseSnapshots, in_flight: int, groups: int) -> Others:
    """Return what is on its way beside the micro-batch of `found`; `in_flight` are counted in groups of layers."""
    more = max(found.dynamic * (in_flight - groups) // groups, 0)
    return Others(in_flight / groups - 1, more) if more else NO_OTHERS


def with_others(found: PhaseSnapshots, others: Others) -> PhaseSnapshots:
    """Return `found` with the activations of `others`."""
    if not others.bytes:
        return found
    batches = "micro-batch" if others.micro_batches == 1 else "micro-batches"
    why = f"activations of {others.micro_batches:g} more {batches} on their way"
    return found._replace(
        snapshots=tuple([_with_activations(snapshot, others.bytes, why) for snapshot in found.snapshots])
    )


def _with_activations(snapshot: Snapshot, more: int, why: str) -> Snapshot:
    place = _place_of_activations(snapshot)
    if place is None:
        return snapshot
    held: list[Held] = [*snapshot.terms]
    held[place] = resized(held[place], more, why)
    return Snapshot(snapshot.name, held, snapshot.explanation)


def _place_of_activations(snapshot: Snapshot) -> int | None:
    """Return where the term of activations stands in a pass, or none in other snapshots."""
    if snapshot.name not in _PASSES:
        return None
    for place, item in enumerate(snapshot.terms):
        if item.name == "activations":
            return place
    return None


class NeedByParts(NamedTuple):
    """What a timeline needs where activations are, and elsewhere, and the most that activations are."""

    passes: Need
    rest: Need
    activations: int
    dynamic: int

    def with_others(self, others: Others) -> Need:
        """Return what `with_others` holds at the most.

        **Formula**: the larger of what is held where activations are, with those of the others, and of what is held
        elsewhere.
        """
        passes, rest, more = self.passes.held, self.rest.held, others.bytes
        most = max(passes.bytes + more, rest.bytes)
        held = Interval(max(passes.low + more, rest.low), most, max(passes.high + more, rest.high))
        largest = max(self.activations + more, self.passes.largest, self.rest.largest) if self.dynamic else 0
        return Need(held, largest)


def need_by_parts(found: PhaseSnapshots) -> NeedByParts:
    """Return what `found` needs with and without activations, once for all stages that hold the same."""
    passes, rest, activations = [], [], 0
    for snapshot in found.snapshots:
        place = _place_of_activations(snapshot)
        if place is None:
            rest.append(snapshot)
        else:
            passes.append(snapshot)
            activations = max(activations, snapshot.terms[place].bytes)
    return NeedByParts(most_of(passes), most_of(rest), activations, found.dynamic)
