"""Micro-batches that a pipeline stage holds at once, and the activations of those beyond the first."""

from typing import Final, NamedTuple

from planner.memory.parallel.shares import with_more_bytes
from planner.memory.phases import AnyTerm, PhaseSnapshots
from planner.workload.parallel import Parallel


def micro_batches_in_flight(parallel: Parallel, stage: int, micro_batches: int) -> int:
    """Return how many micro-batches' activations a stage holds, counted per group of interleaved layers.

    **Formula**: 1F1B min(p − i, m) on stage i of p; interleaved in v groups each min(2 · (p − i − 1) + (v − 1) · p + 1,
    m · v), each of a v-th of the stage's layers.

    **Source**: Narayanan et al. 2021, arXiv 2104.04473 §2.2; Megatron-LM `pipeline_parallel/schedules.py` (warm-up
    micro-batches of the interleaved schedule).
    """
    stages, groups = parallel.pipeline, parallel.interleave
    behind = stages - stage - 1
    if groups == 1:
        return min(behind + 1, micro_batches)
    return min(2 * behind + (groups - 1) * stages + 1, micro_batches * groups)


class ExtraMicroBatches(NamedTuple):
    """Micro-batches in flight beyond the first, and the bytes of their activations."""

    micro_batches: float = 0.0
    bytes: int = 0


NO_EXTRA: Final = ExtraMicroBatches()


def extra_micro_batches(timeline: PhaseSnapshots, in_flight: int, layer_groups: int) -> ExtraMicroBatches:
    """Return the micro-batches in flight beyond the one in `timeline`; `in_flight` counts `layer_groups`."""
    if in_flight <= layer_groups:
        return NO_EXTRA
    activation_bytes = timeline.dynamic * (in_flight - layer_groups) // layer_groups
    return ExtraMicroBatches(in_flight / layer_groups - 1, activation_bytes) if activation_bytes else NO_EXTRA


def with_extra_micro_batches(timeline: PhaseSnapshots, extra: ExtraMicroBatches) -> PhaseSnapshots:
    """Return `timeline` with the activations of `extra` micro-batches in each forward and backward pass."""
    batches = "micro-batch" if extra.micro_batches == 1 else "micro-batches"
    cause = f"activations of {extra.micro_batches:g} more {batches} in flight"
    grown: dict[int, AnyTerm] = {}  # by identity: many snapshots hold the same term
    snapshots = []
    for snapshot in timeline.snapshots:
        if snapshot.activations is not None:
            terms = list(snapshot.own)
            place = [item.name for item in terms].index("activations")
            alone = terms[place]
            if id(alone) not in grown:
                grown[id(alone)] = with_more_bytes(alone, extra.bytes, cause)
            terms[place] = grown[id(alone)]
            snapshot = snapshot.with_own_terms(terms)
        snapshots.append(snapshot)
    return timeline._replace(snapshots=tuple(snapshots))
