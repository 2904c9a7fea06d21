"""Activations of the additional micro-batches in flight on a pipeline stage.

Stages with equal layers differ only in these activations, so that one timeline serves all stages.
"""

from typing import Final, NamedTuple

from planner.memory.parallel.shares import AnyTerm, with_more_bytes
from planner.memory.phases import PhaseSnapshots, Snapshot


class ExtraMicroBatches(NamedTuple):
    """Micro-batches in flight beyond the first, and the bytes of their activations."""

    micro_batches: float = 0.0
    bytes: int = 0


NO_EXTRA: Final = ExtraMicroBatches()


def extra_micro_batches(timeline: PhaseSnapshots, in_flight: int, layer_groups: int) -> ExtraMicroBatches:
    """Return the micro-batches in flight beyond the one in `timeline`; `in_flight` counts `layer_groups`."""
    activation_bytes = max(timeline.dynamic * (in_flight - layer_groups) // layer_groups, 0)
    return ExtraMicroBatches(in_flight / layer_groups - 1, activation_bytes) if activation_bytes else NO_EXTRA


def with_extra_micro_batches(timeline: PhaseSnapshots, extra: ExtraMicroBatches) -> PhaseSnapshots:
    """Return `timeline` with the activations of `extra` micro-batches in each forward and backward pass."""
    if not extra.bytes:
        return timeline
    batches = "micro-batch" if extra.micro_batches == 1 else "micro-batches"
    cause = f"activations of {extra.micro_batches:g} more {batches} in flight"
    return timeline._replace(
        snapshots=tuple([_with_activations(snapshot, extra.bytes, cause) for snapshot in timeline.snapshots])
    )


def _with_activations(snapshot: Snapshot, added_bytes: int, cause: str) -> Snapshot:
    """Return `snapshot` with `added_bytes` more activations, explained by `cause`."""
    if snapshot.activations is None:
        return snapshot
    terms: list[AnyTerm] = [*snapshot.terms]
    place = [item.name for item in terms].index("activations")
    terms[place] = with_more_bytes(terms[place], added_bytes, cause)
    return Snapshot(snapshot.name, terms, snapshot.explanation)
