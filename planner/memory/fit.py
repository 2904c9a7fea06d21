"""The verdict: an uncertain memory need compared with the usable memory of a card, and the resulting report."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from planner.hardware.gpu import Gpu
from planner.hardware.usable import UsableMemory
from planner.memory.chance import ByteInterval, margin_verdict, memory_margin, probability_of_fit
from planner.memory.overhead import FrameworkOverhead
from planner.memory.phases import PhaseSnapshots
from planner.memory.result import CachePool, DeviceShare, MemoryResult, Term, Verdict, bytes_by_certainty
from planner.units import ceil_div

_WITH_A_DESKTOP: Final = ("consumer", "workstation")
_PLATFORM: Final = (
    "Usable memory assumes Linux and no desktop on this GPU. Otherwise, set the memory used by other programs "
    "to what nvidia-smi shows before your run."
)
_SHARDABLE = ("weights", "gradients", "master_weights", "optimizer_states", "other_models", "kv_cache", "state")


class CardFit(NamedTuple):
    """Verdict for one GPU with the byte counts behind it, without the breakdown into terms."""

    gpu_id: str
    """Catalog id of the GPU."""
    verdict: Verdict | None
    """Whether it fits; None if the GPU cannot run the plan, or if its memory is unknown."""
    total_bytes: int
    """Memory that the plan needs on its fullest device."""
    capacity_bytes: int | None
    """Usable memory of the device, None if unknown."""
    free_bytes: int | None
    """Expected free memory; negative where memory is missing."""
    unsupported: tuple[str, ...]
    """Reasons why the plan cannot run on the GPU; empty if it can."""
    fit_probability: float | None = None
    """Probability that it fits, from 0 to 1."""
    least_free_bytes: int | None = None
    """Free memory of the worst case: highest need, lowest usable memory."""
    pool_sequences: float | None = None
    """Sequences for which the KV cache that an engine allocates has room; None without such a cache."""

    @property
    def likely(self) -> bool:
        """Return whether the probability of fitting is at least 0.5: the verdicts *fits* and *tight*."""
        return self.verdict in ("fits", "tight")

    def has_cache_for(self, sequences: int) -> bool:
        """Return whether the KV cache that an engine allocates has room for `sequences`; True without such a cache."""
        return self.pool_sequences is None or self.pool_sequences >= sequences


def judge_bytes(
    need: ByteInterval, usable: UsableMemory | None, taken: int, unsupported: tuple[str, ...], gpu_id: str = ""
) -> CardFit:
    """Return the verdict and probability for `need` on a card of `usable` memory, of which `taken` bytes are in use.

    *fits*: in 19 of 20 cases or more. *does-not-fit*: in fewer than half of them. *tight*: between the two. There is no
    verdict for a workload that the card cannot run, or for a card of unknown memory.
    """
    if usable is None:
        return CardFit(gpu_id, None, need.bytes, None, None, unsupported)
    available = ByteInterval(usable.low_bytes - taken, usable.bytes - taken, usable.high_bytes - taken)
    margin = memory_margin(need, available)
    if unsupported:
        return CardFit(gpu_id, None, need.bytes, usable.bytes, margin.expected, unsupported)
    probability = probability_of_fit(margin, usable.bytes)
    verdict = margin_verdict(margin)
    return CardFit(gpu_id, verdict, need.bytes, usable.bytes, margin.expected, unsupported, probability, margin.worst)


def platform_notes(gpu: Gpu | None, fit: CardFit, taken: int) -> Iterator[str]:
    """Yield a note on uncounted desktop memory if `gpu` may drive a display and the verdict could change."""
    if gpu and gpu.segment in _WITH_A_DESKTOP and fit.verdict in ("fits", "tight") and not taken:
        yield _PLATFORM


def device_share(fit: CardFit, count: int, stage: int | None = None, layers: int | None = None) -> DeviceShare:
    """Return the table row of `count` equal cards; in a pipeline also their `stage` and its number of `layers`."""
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
    """Return the single table row of `count` equal cards, or no row if `fit` names no card."""
    return (device_share(fit, count),) if fit.gpu_id else ()


def at_least_cards(terms: tuple[Term, ...], total: int, available: int, shards: int = 1) -> int | None:
    """Return the minimum number of cards of `available` bytes for `total` bytes if all shardable terms are sharded.

    Where it is sharded already, `terms` are those of one of `shards`. None if the part that cannot be sharded alone
    exceeds one card.
    """
    if total <= available:
        return shards
    shardable = sum(term.bytes for term in terms if term.name in _SHARDABLE)
    available_for_shards = available - (total - shardable)
    return ceil_div(shardable * shards, available_for_shards) if available_for_shards > 0 else None


class DeviceMemory(NamedTuple):
    """Memory of one card: its snapshots in time, and the framework's overhead in numbers and as a term."""

    timeline: PhaseSnapshots
    overhead: FrameworkOverhead
    overhead_term: Term
    need: ByteInterval


def memory_result(
    held: DeviceMemory,
    fit: CardFit,
    usable: UsableMemory | None,
    taken: int,
    *,
    shards: int | None,
    per_gpu: tuple[DeviceShare, ...],
    notes: tuple[str, ...],
    least_likely: CardFit | None = None,
    fullest: int = 0,
    host_bytes: int | None = None,
    disk_bytes: int | None = None,
    cache_pool: CachePool | None = None,
) -> MemoryResult:
    """Return the memory report of the card that holds `held`, with the verdict `fit`, beside `taken` bytes in use.

    `shards` is the number of cards that share all shardable terms, None where unknown. `least_likely` is the verdict
    on the card that is least likely to fit, where cards differ.
    """
    timeline, overhead = held.timeline, held.overhead
    peak, verdict = timeline.peak(), least_likely or fit
    allocated = peak.total - (0 if peak.name == "load" else timeline.outside_bytes)
    allocated += overhead.workspace + overhead.unsplit
    terms = tuple([term for term in (*peak.written(), held.overhead_term) if term.bytes])
    return MemoryResult.model_construct(
        total_bytes=fit.total_bytes,
        low_bytes=held.need.low,
        high_bytes=held.need.high,
        allocated_bytes=allocated,
        reserved_bytes=allocated + overhead.slack,
        peak_phase=peak.name,
        terms=terms,
        certain_bytes=bytes_by_certainty(terms),
        phases=timeline.phases(overhead.total - overhead.slack, overhead.slack),
        capacity_bytes=fit.capacity_bytes,
        capacity_low_bytes=usable.low_bytes if usable else None,
        capacity_high_bytes=usable.high_bytes if usable else None,
        capacity_source=usable.source if usable else None,
        other_processes_bytes=taken,
        free_bytes=fit.free_bytes,
        verdict=verdict.verdict,
        fit_probability=verdict.fit_probability,
        unsupported=fit.unsupported,
        per_gpu=per_gpu,
        fullest=fullest,
        host_bytes=host_bytes,
        disk_bytes=disk_bytes,
        cache_pool=cache_pool,
        at_least_cards=at_least_cards(terms, fit.total_bytes, usable.bytes - taken, shards)
        if usable is not None and shards is not None
        else None,
        notes=notes,
    )
