"""Batch and parallelism of a published run, from its row, with defaults for what the row does not state."""

import re
from typing import Final, NamedTuple

from throughput_recipes import mlperf_degrees
from throughput_rows import Row

from planner.models.architecture import Architecture
from planner.workload.parallel import Parallel

MEGATRON: Final = ("nemo", "nemols", "mbr", "mlt", "meg", "l3")
_SHARDED: Final = ("mxt",)
"""Sources that shard weights over all cards by default: MaxText base.yml (`ici_fsdp_parallelism: -1`)."""
_SQUAD_LENGTH: Final = 384
_ALPACA_LENGTH: Final = 110
"""Mean tokens of a sample of Alpaca with its prompt: 52,002 samples of 5.7 million tokens in all."""
_MOST_GROUPS: Final = 8
"""Groups of layers per stage for interleaved runs that do not state the number."""
_CPU_OFFLOAD: Final = "CPU offload"


class Shape(NamedTuple):
    """Batch and parallelism of a row."""

    micro_batch: int
    accumulation: int
    length: int
    parallel: Parallel
    assumed: str


def shape_of(row: Row, architecture: Architecture) -> Shape:
    """Return how `row` divides its batch and cards.

    Raises:
        ValueError: If its parallel sizes do not multiply to its cards.
    """
    sizes = {name: int(size) for name, size in re.findall(r"(TP|PP|CP|VP|EP|FSDP|DP)=?(\d+)", row.parallelism)}
    assumed = [] if row.parallelism else ["how it is split"]
    tensor, pipeline, context = sizes.get("TP", 1), sizes.get("PP", 1), sizes.get("CP", 1)
    accumulation = _accumulation(row)
    if row.source == "mlt":
        replicas = min(max((row.batch or 1) // accumulation, 1), row.cards)
        tensor, pipeline, context = mlperf_degrees(row, max(row.cards // replicas, 1))
    data = max(row.cards // (tensor * pipeline * context), 1)
    if sizes.get("DP", data) != data:
        raise ValueError("its parallel sizes do not multiply to its cards")
    micro = row.micro_batch or 0
    if not micro:
        assumed.append("micro-batch")
        micro = max((row.batch or data) // (data * accumulation), 1) if row.source == "mlt" else 1
    if row.batch and row.source != "mlt":
        accumulation = max(row.batch // (micro * data), 1)
    if row.source == "tt" and pipeline > 1:  # the local batch is divided into micro-batches of one sequence
        micro, accumulation = 1, micro
    length = row.length or _SQUAD_LENGTH
    if row.source == "lit":
        length, accumulation = _ALPACA_LENGTH, max((row.batch or micro) // micro, 1)
        assumed.append("mean length")
    usual = _MOST_GROUPS if row.source in ("mlt", "l3", "nemo") else 1
    groups = _groups_per_stage(architecture.depth, pipeline, sizes.get("VP", usual))
    spread = _parallel(row, (tensor, pipeline, context), sizes.get("EP", 1), groups)
    return Shape(micro, accumulation, length, spread, ", ".join(assumed))


def _groups_per_stage(depth: int, stages: int, stated_groups: int) -> int:
    """Return the groups of layers of each stage: Megatron counts the embedding and the loss, so that others go, too."""
    even = [number for number in range(1, stated_groups + 1) if depth % (stages * number) == 0]
    return max(even, default=1) if stages > 1 else 1


def _accumulation(row: Row) -> int:
    """Return the micro-batches of a step if the row states them; LAMB's large batches need many."""
    found = re.search(r"grad accumulation (\d+)", row.notes)
    if found:
        return int(found[1])
    return 16 if row.source == "dle" and "accumulation" in row.notes and row.task == "train" else 1


def _parallel(row: Row, split: tuple[int, int, int], expert: int, groups: int) -> Parallel:
    tensor, pipeline, context = split
    sharded, megatron = "FSDP" in row.parallelism or row.source in _SHARDED, row.source in MEGATRON
    return Parallel(
        zero=3 if sharded else 1 if megatron and row.cards > tensor * pipeline * context else 0,
        tensor=tensor,
        pipeline=pipeline,
        context=context,
        expert=expert,
        sequence=megatron and tensor > 1,
        interleave=groups,
        offload="parameters" if _CPU_OFFLOAD in row.notes and sharded else "none",
    )
