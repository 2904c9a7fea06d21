"""The activations of other micro-batches, which are on their way between the stages of a pipeline.

Stages that hold the same differ in these alone, so that what they need follows from one of them.
"""

from typing import Final, NamedTuple

from planner.memory.parallel.shares import Held, resized
from planner.memory.phases import PhaseSnapshots, Snapshot


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
    if snapshot.activations is None:
        return snapshot
    held: list[Held] = [*snapshot.terms]
    place = [item.name for item in held].index("activations")
    held[place] = resized(held[place], more, why)
    return Snapshot(snapshot.name, held, snapshot.explanation)
