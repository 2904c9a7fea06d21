"""Activations of additional micro-batches in flight between pipeline stages.

Stages with equal layers differ only in these activations, so that one timeline serves all stages.
"""

from typing import Final, NamedTuple

from planner.memory.parallel.shares import AnyTerm, with_more_bytes
from planner.memory.phases import PhaseSnapshots, Snapshot


class ExtraMicroBatches(NamedTuple):
    """Additional micro-batches in flight, and the size in bytes of their activations."""

    micro_batches: float = 0.0
    bytes: int = 0


NO_EXTRA: Final = ExtraMicroBatches()


def extra_micro_batches(timeline: PhaseSnapshots, in_flight: int, groups: int) -> ExtraMicroBatches:
    """Return the micro-batches in flight beyond that of `timeline`; `in_flight` counts groups of layers."""
    more = max(timeline.dynamic * (in_flight - groups) // groups, 0)
    return ExtraMicroBatches(in_flight / groups - 1, more) if more else NO_EXTRA


def with_extra_micro_batches(timeline: PhaseSnapshots, extra: ExtraMicroBatches) -> PhaseSnapshots:
    """Return `timeline` with the activations of `extra`."""
    if not extra.bytes:
        return timeline
    batches = "micro-batch" if extra.micro_batches == 1 else "micro-batches"
    why = f"activations of {extra.micro_batches:g} more {batches} in flight"
    return timeline._replace(
        snapshots=tuple([_with_activations(snapshot, extra.bytes, why) for snapshot in timeline.snapshots])
    )


def _with_activations(snapshot: Snapshot, more: int, why: str) -> Snapshot:
    if snapshot.activations is None:
        return snapshot
    held: list[AnyTerm] = [*snapshot.terms]
    place = [item.name for item in held].index("activations")
    held[place] = with_more_bytes(held[place], more, why)
    return Snapshot(snapshot.name, held, snapshot.explanation)
