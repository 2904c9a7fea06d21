"""The estimate: from a model, a workload and a card to the peak, its parts and the verdict."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from planner.dtypes import ELEMENT_BYTES
from planner.hardware.gpu import Gpu
from planner.hardware.usable import UsableMemory
from planner.memory.corrections import (
    Correction,
    corrected_moments,
    corrected_overhead,
    corrected_term,
    correction_note,
    sources,
    that_count,
    unused_note,
)
from planner.memory.engines.pool import cache_pool, pool_notes
from planner.memory.engines.vllm_setup import CardClass, card_class
from planner.memory.fit import CardFit, at_least_cards, device_shares, judge_bytes
from planner.memory.one_card import one_card, one_card_moments
from planner.memory.overhead import framework_overhead, overhead_term
from planner.memory.parallel.spread import is_replicated, spread_moments
from planner.memory.phases import Moments
from planner.memory.result import MemoryResult
from planner.memory.support import unsupported_reasons
from planner.models.architecture import Architecture
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference, Training

_LARGE_TERMS = ("logits", "activations")


def estimate_memory(
    architecture: Architecture,
    workload: Training | Inference,
    gpu: Gpu | None = None,
    usable: UsableMemory | None = None,
    count: int = 1,
    corrections: tuple[Correction, ...] = (),
) -> MemoryResult:
    """Return the peak memory of one device of `gpu` when `architecture` runs `workload` on `count` cards.

    Without a card the peak has the overhead of a typical CUDA card and there is no verdict. Open choices of the
    workload are filled in by `with_defaults`. Of `corrections`, those that are for such a run on this card are added as
    parts of their own.

    **Formula**: max over phases of Σ terms, plus the framework's overhead.

    **Assumes** that each card holds the whole model (data parallelism); the terms say what else each of them assumes.
    """
    filled = with_defaults(workload, architecture, count)
    own = that_count(corrections, filled, architecture.model_type, gpu.id if gpu else None)
    moments = corrected_moments(moments_of(architecture, filled, _class_of(filled, gpu)), own)
    peak = moments.peak()
    estimated = framework_overhead(gpu, moments.dynamic, _largest_tensor(moments), moments.threads)
    overhead = corrected_overhead(estimated, own)
    added = overhead.total - estimated.total
    written = corrected_term(overhead_term(estimated, moments.dynamic), added, sources(own))
    terms = tuple(term for term in (*peak.written(), written) if term.bytes)
    total = peak.total + overhead.total
    high = moments.high() + overhead.high
    allocated = peak.total - (0 if peak.name == "load" else moments.outside_bytes) + overhead.workspace
    taken = filled.other_processes_bytes
    unsupported = unsupported_reasons(filled, gpu) if gpu else ()
    fit = judge_bytes(total, high, usable, taken, unsupported, gpu_id=gpu.id if gpu else "")
    pool = cache_pool(moments.pool, usable) if moments.pool and usable else None
    return MemoryResult(
        total_bytes=total,
        low_bytes=sum(term.low_bytes for term in terms),
        high_bytes=high,
        allocated_bytes=allocated,
        reserved_bytes=allocated + overhead.slack,
        peak_phase=peak.name,
        terms=terms,
        phases=moments.phases(overhead.context + overhead.workspace, overhead.slack),
        capacity_bytes=fit.capacity_bytes,
        capacity_low_bytes=usable.low_bytes if usable else None,
        capacity_high_bytes=usable.high_bytes if usable else None,
        capacity_source=usable.source if usable else None,
        other_processes_bytes=taken,
        free_bytes=fit.free_bytes,
        verdict=fit.verdict,
        unsupported=fit.unsupported,
        per_gpu=device_shares(fit, count),
        host_bytes=moments.host_bytes,
        cache_pool=pool,
        at_least_cards=at_least_cards(terms, total, usable.bytes - taken) if usable else None,
        notes=(
            *_correction_notes(corrections, own),
            *pool_notes(pool, filled),
            *moments.notes,
            *_notes(architecture, filled),
        ),
    )


def fits_on(
    architecture: Architecture,
    workload: Training | Inference,
    cards: Iterable[tuple[Gpu, UsableMemory | None]],
    count: int = 1,
    corrections: tuple[Correction, ...] = (),
) -> Iterator[CardFit]:
    """Yield the verdict of `estimate_memory` on each of `cards`, in numbers only, so that a whole catalog is quick."""
    filled = with_defaults(workload, architecture, count)
    by_class: dict[CardClass, tuple[Moments, _Need]] = {}
    for gpu, usable in cards:
        of_card = _class_of(filled, gpu)
        if of_card not in by_class:
            estimated = moments_of(architecture, filled, of_card)
            by_class[of_card] = (estimated, _need(estimated))
        moments, plain = by_class[of_card]
        own = that_count(corrections, filled, architecture.model_type, gpu.id)
        need = _need(corrected_moments(moments, own)) if own else plain
        overhead = framework_overhead(gpu, moments.dynamic, need.largest, moments.threads)
        overhead = corrected_overhead(overhead, own)
        total, high = need.bytes + overhead.total, need.high + overhead.high
        yield judge_bytes(
            total, high, usable, filled.other_processes_bytes, unsupported_reasons(filled, gpu), gpu_id=gpu.id
        )


class _Need(NamedTuple):
    """What `moments` hold at the most, the framework's overhead aside, and their largest short-lived tensor."""

    bytes: int
    high: int
    largest: int


def _need(moments: Moments) -> _Need:
    return _Need(moments.peak().total, moments.high(), _largest_tensor(moments))


@lru_cache(maxsize=512)
def moments_of(
    architecture: Architecture, workload: Training | Inference, of_card: CardClass = CardClass.OTHER
) -> Moments:
    """Return what is alive in each phase, the framework's overhead aside; `workload` has its defaults filled in.

    On `of_card` depend the defaults of vLLM.
    """
    if workload.parallel.is_plain and not is_replicated(workload):
        return one_card_moments(architecture, workload, of_card)
    return spread_moments(architecture, workload, one_card(of_card))


def _class_of(workload: Training | Inference, gpu: Gpu | None) -> CardClass:
    """Return the class of `gpu` where the engine's defaults depend on it, else the same for all cards."""
    return card_class(gpu) if gpu and workload.profile == "vllm" else CardClass.OTHER


def _largest_tensor(moments: Moments) -> int:
    """Return the largest short-lived tensor of all moments: what the prefill left behind is there in decoding too.

    An engine that reserves everything at the start has none.
    """
    if not moments.dynamic:
        return 0
    terms = (term for moment in moments.moments for term in moment.terms)
    return max((term.bytes for term in terms if term.name in _LARGE_TERMS), default=0)


def _correction_notes(corrections: tuple[Correction, ...], own: tuple[Correction, ...]) -> Iterator[str]:
    for correction in corrections:
        yield correction_note(correction) if correction in own else unused_note(correction)


def _notes(architecture: Architecture, workload: Training | Inference) -> tuple[str, ...]:
    notes = list(architecture.reader_notes)
    if architecture.kind == "vision-language":
        notes.append("The vision tower's parameters are counted; images and their activations are not.")
    length = workload.sequence_length if isinstance(workload, Training) else workload.context_length
    if architecture.max_context and length and length > architecture.max_context:
        notes.append(f"{length:,} tokens are more than the {architecture.max_context:,} the model is made for.")
    if isinstance(workload, Inference) and workload.profile == "hf" and workload.kv_cache not in ELEMENT_BYTES:
        notes.append("A quantised cache needs an engine that has one: its size is exact, scratch is not estimated.")
    return tuple(notes)
