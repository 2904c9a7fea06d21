"""The verdict: an interval of need against what the card can really give."""

from typing import NamedTuple

from planner.hardware.gpu import Gpu
from planner.hardware.usable import UsableMemory
from planner.memory.result import DeviceShare, MemoryResult, Verdict
from planner.units import ceil_div

_SHARDABLE = ("weights", "gradients", "master_weights", "optimizer_states", "kv_cache", "state")


class CardFit(NamedTuple):
    """The verdict for one card, in numbers only."""

    gpu_id: str
    verdict: Verdict | None
    total_bytes: int
    capacity_bytes: int | None
    free_bytes: int | None
    unsupported: tuple[str, ...]


def judge_bytes(
    gpu_id: str,
    total: int,
    high: int,
    usable: UsableMemory | None,
    taken: int,
    unsupported: tuple[str, ...],
) -> CardFit:
    """Return the verdict on a need of `total` (at most `high`) bytes where others hold `taken`.

    *fits*: even the high estimate is below the least the card may give. *does-not-fit*: the expected amount is above
    what it gives. *tight*: between the two. A workload that the card cannot run, or a card whose memory is not known,
    gets no verdict.
    """
    if usable is None:
        return CardFit(gpu_id, None, total, None, None, unsupported)
    free = usable.bytes - taken - total
    verdict: Verdict = "does-not-fit"
    if free >= 0:
        verdict = "fits" if high <= usable.low_bytes - taken else "tight"
    return CardFit(gpu_id, None if unsupported else verdict, total, usable.bytes, free, unsupported)


def judge(result: MemoryResult, gpu: Gpu | None, usable: UsableMemory | None, count: int) -> MemoryResult:
    """Return `result` with the verdict for one device of `gpu`, of which `usable` bytes can be had."""
    if gpu is None:
        return result
    fit = judge_bytes(
        gpu.id, result.total_bytes, result.high_bytes, usable, result.other_processes_bytes, result.unsupported
    )
    share = DeviceShare(
        gpu=gpu.id,
        count=count,
        total_bytes=result.total_bytes,
        capacity_bytes=fit.capacity_bytes,
        free_bytes=fit.free_bytes,
        verdict=fit.verdict,
    )
    if usable is None or fit.free_bytes is None:
        return result.evolve(per_gpu=(share,))
    return result.evolve(
        capacity_bytes=usable.bytes,
        capacity_low_bytes=usable.low_bytes,
        capacity_high_bytes=usable.high_bytes,
        capacity_source=usable.source,
        free_bytes=fit.free_bytes,
        verdict=fit.verdict,
        at_least_cards=1 if fit.free_bytes >= 0 else _at_least(result, usable.bytes - result.other_processes_bytes),
        per_gpu=(share,),
    )


def _at_least(result: MemoryResult, available: int) -> int | None:
    """Return the fewest cards that could hold the terms if all that can be sharded were, or none if none could."""
    shardable = sum(term.bytes for term in result.terms if term.name in _SHARDABLE)
    room = available - (result.total_bytes - shardable)
    return ceil_div(shardable, room) if room > 0 else None
