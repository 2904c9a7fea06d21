"""The verdict: an interval of need against what the card can really give."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from planner.hardware.gpu import Gpu
from planner.hardware.usable import UsableMemory
from planner.memory.chance import Interval, chance_of, margin_of, verdict_of
from planner.memory.result import DeviceShare, Term, Verdict
from planner.units import ceil_div

_WITH_A_DESKTOP: Final = ("consumer", "workstation")
_PLATFORM: Final = (
    "Usable is what Linux gives on a card without a desktop. For what a desktop takes, or Windows (WDDM) keeps, there "
    "is no source, and nothing is counted: name what nvidia-smi shows before the start as memory held by others."
)
_SHARDABLE = ("weights", "gradients", "master_weights", "optimizer_states", "kv_cache", "state")


class CardFit(NamedTuple):
    """The verdict for one card, in numbers only."""

    gpu_id: str
    verdict: Verdict | None
    total_bytes: int
    capacity_bytes: int | None
    free_bytes: int | None
    unsupported: tuple[str, ...]
    fit_probability: float | None = None

    @property
    def likely(self) -> bool:
        """Return whether it fits at least as likely as not: tight counts."""
        return self.verdict in ("fits", "tight")


def judge_bytes(
    need: Interval, usable: UsableMemory | None, taken: int, unsupported: tuple[str, ...], gpu_id: str = ""
) -> CardFit:
    """Return the verdict on `need` where others hold `taken`, and the probability that it fits.

    *fits*: in 19 of 20 cases or more. *does-not-fit*: in less than half of them. *tight*: between the two. A workload
    that the card cannot run, or a card whose memory is not known, gets no verdict.
    """
    if usable is None:
        return CardFit(gpu_id, None, need.bytes, None, None, unsupported)
    room = Interval(usable.low_bytes - taken, usable.bytes - taken, usable.high_bytes - taken)
    margin = margin_of(need, room)
    if unsupported:
        return CardFit(gpu_id, None, need.bytes, usable.bytes, margin.expected, unsupported)
    chance = chance_of(margin, usable.bytes)
    return CardFit(gpu_id, verdict_of(margin), need.bytes, usable.bytes, margin.expected, unsupported, chance)


def platform_notes(gpu: Gpu | None, fit: CardFit, taken: int) -> Iterator[str]:
    """Say of a card that may drive a desktop what is not known, unless it does not matter or others were counted."""
    if gpu and gpu.segment in _WITH_A_DESKTOP and fit.verdict in ("fits", "tight") and not taken:
        yield _PLATFORM


def device_share(fit: CardFit, count: int, stage: int | None = None, layers: int | None = None) -> DeviceShare:
    """Return what each of `count` equal cards holds, at their `stage` of a pipeline with its `layers`."""
    return DeviceShare(
        gpu=fit.gpu_id or None,
        count=count,
        total_bytes=fit.total_bytes,
        capacity_bytes=fit.capacity_bytes,
        free_bytes=fit.free_bytes,
        verdict=fit.verdict,
        fit_probability=fit.fit_probability,
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
