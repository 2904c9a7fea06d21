"""The verdict: an interval of need against what the card can really give."""

from typing import NamedTuple

from planner.hardware.usable import UsableMemory
from planner.memory.result import DeviceShare, Term, Verdict
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
    total: int, high: int, usable: UsableMemory | None, taken: int, unsupported: tuple[str, ...], gpu_id: str = ""
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


def device_share(fit: CardFit, count: int, stage: int | None = None, layers: int | None = None) -> DeviceShare:
    """Return what each of `count` equal cards holds, at their `stage` of a pipeline with its `layers`."""
    return DeviceShare(
        gpu=fit.gpu_id or None,
        count=count,
        total_bytes=fit.total_bytes,
        capacity_bytes=fit.capacity_bytes,
        free_bytes=fit.free_bytes,
        verdict=fit.verdict,
        stage=stage,
        layers=layers,
    )


def device_shares(fit: CardFit, count: int) -> tuple[DeviceShare, ...]:
    """Return what each of `count` equal cards holds, or nothing if `fit` is about no card."""
    return (device_share(fit, count),) if fit.gpu_id else ()


def at_least_cards(terms: tuple[Term, ...], total: int, available: int, shards: int = 1) -> int | None:
    """Return the fewest cards of `available` bytes that could hold `total` if all that can be sharded were.

    Where it is sharded already, `terms` are those of one of `shards`. None if what cannot be sharded is already more
    than one card holds.
    """
    if total <= available:
        return shards
    shardable = sum(term.bytes for term in terms if term.name in _SHARDABLE)
    room = available - (total - shardable)
    return ceil_div(shardable * shards, room) if room > 0 else None
