"""From snapshots of a run to its peak: a maximum over phases, never one sum."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from planner.memory.chance import Interval
from planner.memory.result import CachePool, Phase, PhaseName, Term, TermName, TermShare

_LARGE_TERMS: Final = ("logits", "activations")
_PASSES: Final = ("forward", "loss", "backward")
"""The phases in which activations of other micro-batches may be alive as well."""


class Deferred(NamedTuple):
    """A term of which only the bytes are known yet: most snapshots are not the peak, and their terms are never read."""

    name: TermName
    bytes: int
    low_bytes: int
    high_bytes: int
    write: Callable[[], Term]


class Snapshot:
    """A phase, or a point within it, and the terms alive there.

    They hold `total` bytes, between `low` and `high`. `largest` is the largest tensor that the allocator gets back
    soon, `activations` the bytes of the activations in a pass through the network, None where there are none.
    """

    __slots__ = ("activations", "explanation", "high", "largest", "low", "name", "terms", "total")

    def __init__(self, name: PhaseName, terms: Sequence[Term | Deferred], explanation: str) -> None:
        self.name: PhaseName = name
        self.terms = terms
        self.explanation = explanation
        self.activations: int | None = None
        total = low = high = largest = 0
        for term in terms:
            size = term.bytes
            total += size
            low += term.low_bytes
            high += term.high_bytes
            if term.name in _LARGE_TERMS:
                if size > largest:
                    largest = size
                if self.activations is None and term.name == "activations" and name in _PASSES:
                    self.activations = size
        self.total, self.low, self.high, self.largest = total, low, high, largest

    def written(self) -> tuple[Term, ...]:
        """Return the terms with their formulas."""
        return tuple(term.write() if isinstance(term, Deferred) else term for term in self.terms)


class PagePool(NamedTuple):
    """A cache in pages that takes what is left of a share of the card.

    `page_bytes` are those of one page of every layer, `pages` how many a sequence of `tokens` takes; `beside_bytes`
    is what stands beside the cache.
    """

    page_bytes: int
    pages: int
    tokens: int
    beside_bytes: int
    utilization: float

    def on(self, usable_bytes: int) -> CachePool:
        """Return what the cache holds on a card that gives a process `usable_bytes`.

        **Formula**: pages = ⌊(u · C − beside) / page⌋; sequences = pages / pages a sequence; tokens = sequences · their
        length. C is the total that a process sees (79.19 GiB on an H100 with 80 GB), not the label.

        **Source**: vLLM 0.33 v1/worker/gpu_worker.py determine_available_memory, v1/core/kv_cache_utils.py
        get_max_concurrency_for_kv_cache_config.
        """
        available = max(int(self.utilization * usable_bytes) - self.beside_bytes, 0)
        pages = available // self.page_bytes
        sequences = pages / self.pages
        return CachePool(
            bytes=pages * self.page_bytes,
            tokens=int(sequences * self.tokens),
            sequences=round(sequences, 2),
            utilization=self.utilization,
        )


class Need(NamedTuple):
    """The most bytes of all snapshots with their bounds, and the largest short-lived tensor."""

    held: Interval
    largest: int


class PhaseSnapshots(NamedTuple):
    """The snapshots of a run, in order.

    `dynamic` are the bytes that come and go in each step, `threads` those that launch matrix products, `host_bytes`
    what stays in RAM, `pool` how the engine fills the card with its cache, `notes` what it was estimated as.
    `layer_bytes` are the activations that go with each layer in the backward pass, `behind_bytes` those that go before
    the last of them, `outside_bytes` what libraries hold beside the framework's allocator.
    """

    snapshots: tuple[Snapshot, ...]
    dynamic: int
    threads: int = 1
    host_bytes: int | None = None
    pool: PagePool | None = None
    notes: tuple[str, ...] = ()
    layer_bytes: int = 0
    behind_bytes: int = 0
    outside_bytes: int = 0

    def peak(self) -> Snapshot:
        """Return the snapshot with the most bytes alive, the earliest of equals."""
        return max(self.snapshots, key=attrgetter("total"))

    def need(self, more: int = 0) -> Need:
        """Return the most that any snapshot holds, with `more` bytes of activations wherever there are some.

        What a prefill left behind is the largest tensor in decoding, too; a program that reserves everything has no
        short-lived tensors.
        """
        low = most = high = largest = 0
        for snapshot in self.snapshots:
            added, tensor = 0, snapshot.largest
            if more and snapshot.activations is not None:
                added, tensor = more, max(tensor, snapshot.activations + more)
            if snapshot.low + added > low:
                low = snapshot.low + added
            if snapshot.total + added > most:
                most = snapshot.total + added
            if snapshot.high + added > high:
                high = snapshot.high + added
            if tensor > largest:
                largest = tensor
        return Need(Interval(low, most, high), largest if self.dynamic else 0)

    def phases(self, fixed_bytes: int, slack_bytes: int) -> tuple[Phase, ...]:
        """Return each phase at its own highest snapshot, with the overhead alive in it.

        Loading has no slack yet, unless nothing later needs more: all slack belongs to the peak.
        """
        without_slack = () if self.peak().name == "load" else ("load",)
        highest: dict[PhaseName, Snapshot] = {}
        for snapshot in self.snapshots:
            known = highest.get(snapshot.name)
            if known is None or snapshot.total > known.total:
                highest[snapshot.name] = snapshot
        return tuple(
            _phase(snapshot, fixed_bytes + (0 if snapshot.name in without_slack else slack_bytes))
            for snapshot in highest.values()
        )


def _phase(snapshot: Snapshot, overhead_bytes: int) -> Phase:
    shares = [TermShare(term.name, term.bytes) for term in snapshot.terms if term.bytes]
    shares.append(TermShare("framework_overhead", overhead_bytes))
    return Phase(
        name=snapshot.name,
        bytes=snapshot.total + overhead_bytes,
        shares=tuple(shares),
        explanation=snapshot.explanation,
    )
