"""Memory snapshots of a run, its phases, and its peak: the maximum over all snapshots."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from planner.memory.chance import ByteInterval
from planner.memory.result import CachePool, Phase, PhaseName, Term, TermName, TermShare

_LARGE_TERMS: Final = ("logits", "activations")
_STORED: Final = frozenset(
    ("weights", "draft", "adapters", "gradients", "master_weights", "optimizer_states", "kv_cache", "state")
)
"""Terms whose tensors every version of a program holds."""
_PASSES: Final = ("forward", "loss", "backward")
"""Phases in which activations of other pipeline micro-batches may be alive as well."""


class DeferredTerm(NamedTuple):
    """A memory term with a formula that is written on demand, since only the terms at the peak are shown."""

    name: TermName
    bytes: int
    low_bytes: int
    high_bytes: int
    write: Callable[[], Term]


AnyTerm = Term | DeferredTerm


class LastingTerms(NamedTuple):
    """Terms alive at many moments, added up once for all: those listed before and those listed after a moment's own."""

    before: Sequence[AnyTerm] = ()
    after: Sequence[AnyTerm] = ()
    total: int = 0
    low: int = 0
    high: int = 0
    stored: int = 0


NO_TERMS: Final = LastingTerms()


def lasting_terms(before: Sequence[AnyTerm], after: Sequence[AnyTerm] = ()) -> LastingTerms:
    """Return terms with their sums, listed `before` and `after` those of a moment."""
    total = low = high = stored = 0
    for term in (*before, *after):
        total += term.bytes
        low += term.low_bytes
        high += term.high_bytes
        if term.name in _STORED:
            stored += term.low_bytes
    return LastingTerms(before, after, total, low, high, stored)


class Snapshot:
    """A moment in a phase of the run, with the memory terms alive at that moment: its own and `lasting` ones.

    Together they are `total` bytes, between `low` and `high`, `stored` of them in tensors that every version holds.
    `largest` is the largest short-lived tensor, `activations` the bytes of activations during a forward or backward
    pass, None elsewhere.
    """

    __slots__ = ("activations", "explanation", "high", "largest", "lasting", "low", "name", "own", "stored", "total")

    def __init__(
        self, name: PhaseName, terms: Sequence[AnyTerm], explanation: str, lasting: LastingTerms = NO_TERMS
    ) -> None:
        _, _, total, low, high, stored = lasting
        largest = 0
        activations: int | None = None
        for term in terms:
            size = term.bytes
            total += size
            low += term.low_bytes
            high += term.high_bytes
            if term.name in _STORED:
                stored += term.low_bytes
            if term.name in _LARGE_TERMS:
                if size > largest:
                    largest = size
                if activations is None and term.name == "activations" and name in _PASSES:
                    activations = size
        self.name: PhaseName = name
        self.own, self.lasting, self.explanation = terms, lasting, explanation
        self.total, self.low, self.high, self.stored = total, low, high, stored
        self.largest, self.activations = largest, activations

    @property
    def terms(self) -> list[AnyTerm]:
        """Return all terms alive at this moment, in the order in which results list them."""
        return [*self.lasting.before, *self.own, *self.lasting.after]

    def with_terms(self, terms: Sequence[AnyTerm]) -> "Snapshot":
        """Return this moment with other `terms`."""
        return Snapshot(self.name, terms, self.explanation)

    def with_own_terms(self, terms: Sequence[AnyTerm]) -> "Snapshot":
        """Return this moment with other short-lived `terms` beside the lasting ones."""
        return Snapshot(self.name, terms, self.explanation, self.lasting)

    def written(self) -> tuple[Term, ...]:
        """Return the terms of this moment with their formulas written out."""
        return tuple(term.write() if isinstance(term, DeferredTerm) else term for term in self.terms)


class PagePool(NamedTuple):
    """A paged KV cache that takes the rest of the engine's share of the card's memory.

    `page_bytes` is one page of every layer, `pages` the pages of a sequence of `tokens`, of which all sequences have
    `shared_pages` in common. The share `utilization` is of
    what the card has besides `taken_bytes`, and holds `other_bytes` besides the cache; `beyond_bytes` are allocated
    from what the share leaves.
    """

    page_bytes: int
    pages: int
    tokens: int
    other_bytes: int
    utilization: float
    taken_bytes: int = 0
    beyond_bytes: int = 0
    shared_pages: int = 0

    def capacity(self, usable_bytes: int) -> CachePool:
        """Return the bytes, tokens and sequences that the cache holds on a card with `usable_bytes` for a process.

        **Formula**: pages = ⌊(u · (C − taken) − beside) / page⌋; sequences = (pages − common) / (pages per sequence −
        common); tokens = pages / pages per sequence · their length. C is the total that a process sees (79.19 GiB on an
        H100 with 80 GB), not the label.

        **Source**: vLLM 0.33 v1/worker/gpu_worker.py determine_available_memory, v1/core/kv_cache_utils.py
        get_max_concurrency_for_kv_cache_config; what the share is of in other engines: `planner.memory.software`.
        """
        share = int(self.utilization * max(usable_bytes - self.taken_bytes, 0))
        available = max(share - self.other_bytes, 0)
        pages = available // self.page_bytes
        sequences = max(pages - self.shared_pages, 0) / (self.pages - self.shared_pages)
        return CachePool(
            bytes=pages * self.page_bytes,
            tokens=int(pages / self.pages * self.tokens),
            sequences=round(sequences, 2),
            utilization=self.utilization,
            reserved_bytes=self.taken_bytes + share + self.beyond_bytes,
        )

    def with_taken(self, size_bytes: int) -> "PagePool":
        """Return the pool of a card on which `size_bytes` more are in use before the share is counted."""
        return self._replace(taken_bytes=self.taken_bytes + size_bytes)


class PeakNeed(NamedTuple):
    """Peak memory over all snapshots with its bounds, its `stored` bytes, and the largest short-lived tensor."""

    held: ByteInterval
    stored: int
    largest: int


class PhaseSnapshots(NamedTuple):
    """The snapshots of a run on one card in order of time, with facts about the whole run.

    `dynamic` are the bytes allocated and freed in each step, `threads` the threads that launch matrix products,
    `host_bytes` the offloaded bytes, `pool` the cache with which an engine fills the card, `notes` the assumptions,
    `refusal` why a program does not start, whatever is free.
    `outside_bytes` is memory of libraries outside the framework's allocator, `unsplit_bytes` what the blocks of
    long-lived tensors hold beyond the tensors.
    """

    snapshots: tuple[Snapshot, ...]
    dynamic: int
    threads: int = 1
    host_bytes: int | None = None
    pool: PagePool | None = None
    notes: tuple[str, ...] = ()
    refusal: str = ""
    outside_bytes: int = 0
    unsplit_bytes: int = 0

    def peak(self) -> Snapshot:
        """Return the snapshot with the highest memory; of equal snapshots the earliest."""
        return max(self.snapshots, key=attrgetter("total"))

    def need(self, activation_bytes: int = 0) -> PeakNeed:
        """Return the peak memory over all snapshots, with `activation_bytes` added in forward and backward passes.

        The largest tensor of a prefill also counts in decoding; a program that reserves everything has no short-lived
        tensors.
        """
        low = most = high = stored = largest = 0
        for snapshot in self.snapshots:
            least, total, upper = snapshot.low, snapshot.total, snapshot.high
            if activation_bytes and snapshot.activations is not None:
                least, total, upper = least + activation_bytes, total + activation_bytes, upper + activation_bytes
                if snapshot.activations + activation_bytes > largest:
                    largest = snapshot.activations + activation_bytes
            if least > low:
                low = least
            if total > most:
                most = total
            if upper > high:
                high = upper
            if snapshot.stored > stored:
                stored = snapshot.stored
            if snapshot.largest > largest:
                largest = snapshot.largest
        return PeakNeed(ByteInterval(low, most, high), stored, largest if self.dynamic else 0)

    def phases(self, fixed_bytes: int, slack_bytes: int) -> tuple[Phase, ...]:
        """Return each phase at its highest snapshot, including the framework's overhead.

        Loading has no allocator slack yet, unless it is the peak, to which all slack belongs.
        """
        without_slack = () if self.peak().name == "load" else ("load",)
        highest: dict[PhaseName, Snapshot] = {}
        for snapshot in self.snapshots:
            known = highest.get(snapshot.name)
            if known is None or snapshot.total > known.total:
                highest[snapshot.name] = snapshot
        return tuple(
            _phase_with_overhead(snapshot, fixed_bytes + (0 if snapshot.name in without_slack else slack_bytes))
            for snapshot in highest.values()
        )


def _phase_with_overhead(snapshot: Snapshot, overhead_bytes: int) -> Phase:
    """Return the phase of `snapshot` with the framework's overhead as a further term."""
    shares = [TermShare(term.name, term.bytes) for term in snapshot.terms if term.bytes]
    shares.append(TermShare("framework_overhead", overhead_bytes))
    return Phase(
        name=snapshot.name,
        bytes=snapshot.total + overhead_bytes,
        shares=tuple(shares),
        explanation=snapshot.explanation,
    )
