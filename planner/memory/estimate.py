"""Memory estimates: the peak of a workload on given cards, its terms, and the verdict."""

from collections.abc import Hashable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from planner.hardware.gpu import Gpu
from planner.hardware.mig import ALONE
from planner.hardware.usable import UsableMemory
from planner.memory.chance import ByteInterval, Spread
from planner.memory.corrections import (
    Correction,
    applicable_corrections,
    applied_correction_note,
    corrected_overhead,
    corrected_term,
    corrected_timeline,
    correction_sources_text,
    unused_correction_note,
)
from planner.memory.fit import CardFit, DeviceMemory, device_share, judge_bytes, memory_result, platform_notes
from planner.memory.overhead import FixedOverhead, FrameworkOverhead, fixed_overhead, framework_overhead, overhead_term
from planner.memory.parallel.micro_batches import ExtraMicroBatches
from planner.memory.parallel.placing import (
    CardGroup,
    LoadedCards,
    card_class_of,
    is_distributed,
    least_shards,
    place_workload,
    sharing_notes,
)
from planner.memory.phases import PeakNeed, PhaseSnapshots
from planner.memory.result import CachePool, DeviceShare, MemoryResult
from planner.memory.software import memory_of
from planner.memory.software.base import SoftwareMemory
from planner.models.architecture import Architecture, StateMixer, with_image_size
from planner.models.drafts import with_draft
from planner.units import GIB
from planner.workload.defaults import as_trained, with_defaults
from planner.workload.formats import loading_notes
from planner.workload.software.registry import DEFAULT, serving_support
from planner.workload.training import Training
from planner.workload.workload import Inference


class ResolvedWorkload(NamedTuple):
    """A network resized to the workload's images, and a workload with every default filled in."""

    architecture: Architecture
    workload: Training | Inference


def resolve_workload(architecture: Architecture, workload: Training | Inference, count: int) -> ResolvedWorkload:
    """Return `architecture` and `workload` with every unset option resolved for `count` cards.

    The network's notes then say how weights as stored are loaded, or that their format is assumed.

    Raises:
        SpecError: If the workload is not possible with the model or the number of cards.
    """
    sized = with_image_size(architecture, workload.image_size)
    if isinstance(workload, Inference) and sized.draft is None:
        sized = with_draft(sized, workload.speculation.method)
    settled = with_defaults(workload, sized, count)
    if isinstance(settled, Training):
        sized = as_trained(sized, settled)
    if isinstance(settled, Inference) and isinstance(workload, Inference):
        notes = loading_notes(settled.profile or DEFAULT, workload.weights, settled.weights or "", sized)
        sized = sized.evolve(reader_notes=(*sized.reader_notes, *notes)) if notes else sized
    return ResolvedWorkload(sized, settled)


def estimate_memory(
    architecture: Architecture,
    workload: Training | Inference,
    gpu: Gpu | None = None,
    usable: UsableMemory | None = None,
    count: int = 1,
    corrections: tuple[Correction, ...] = (),
) -> MemoryResult:
    """Return the peak memory of one device of `gpu` when `architecture` runs `workload` on `count` GPUs.

    Without a GPU, the peak includes the overhead of a typical CUDA GPU and there is no verdict. Open choices of the
    workload are filled in by `with_defaults`. Those of `corrections` that apply to such a run on this GPU are added as
    separate parts. Where GPUs hold different amounts, the result describes the one that holds most.

    **Formula**: max over phases of Σ terms, plus the framework's overhead.
    """
    return estimate_on(architecture, workload, (CardGroup(gpu, usable, count),), corrections)


def estimate_on(
    architecture: Architecture,
    workload: Training | Inference,
    cards: tuple[CardGroup, ...],
    corrections: tuple[Correction, ...] = (),
) -> MemoryResult:
    """Return the peak memory of the card with the least free memory, and a table of all `cards`, which may differ.

    Pipeline stages are assigned to the cards in their order, with layers in proportion to the free memory of each.
    """
    resolved = resolve_workload(architecture, workload, sum([group.number for group in cards]))
    return estimate_resolved(resolved, cards, corrections).memory


class Estimate(NamedTuple):
    """Memory result for the card with the least free memory, and that card, which is None if no card is chosen."""

    memory: MemoryResult
    gpu: Gpu | None


def estimate_resolved(
    resolved: ResolvedWorkload, cards: tuple[CardGroup, ...], corrections: tuple[Correction, ...] = ()
) -> Estimate:
    """Return the memory estimate of a workload with filled-in defaults on `cards`, which may differ."""
    architecture, workload = resolved
    program = memory_of(architecture, workload)
    devices = _device_estimates(resolved, program, place_workload(architecture, workload, program, cards), corrections)
    fits = [device.fit for _, device in devices]
    free = [_free_memory_sort_key(fit) for fit in fits]
    fullest = free.index(min(free))
    loaded, fullest_device = devices[fullest]
    own, least_likely, taken = fullest_device.kind.own, min(fits, key=_fit_sort_key), workload.other_processes_bytes
    timeline = loaded.timeline_with_all_micro_batches()
    written = overhead_term(fullest_device.estimated, timeline.dynamic)
    if own:
        timeline = corrected_timeline(timeline, own)
        written = corrected_term(
            written, fullest_device.overhead.total - fullest_device.estimated.total, correction_sources_text(own)
        )
    offloaded, on_disk = _offloaded_bytes(placed for placed, _ in devices), workload.parallel.offload == "nvme"
    usable = loaded.cards.usable
    pool = timeline.pool.capacity(usable.bytes) if timeline.pool and usable else None
    memory = memory_result(
        DeviceMemory(timeline, fullest_device.overhead, written, fullest_device.need),
        fullest_device.fit,
        usable,
        taken,
        shards=least_shards(workload) if architecture.stacks else None,
        per_gpu=_device_table(devices, workload),
        least_likely=least_likely,
        fullest=fullest,
        host_bytes=None if on_disk else offloaded,
        disk_bytes=offloaded if on_disk else None,
        cache_pool=pool,
        notes=(
            *_correction_notes(corrections, own),
            *_cache_pool_notes(pool, workload),
            *timeline.notes,
            *platform_notes(loaded.cards.gpu, least_likely, taken),
            *sharing_notes(workload, program, cards),
            *_estimate_notes(architecture, workload, program),
        ),
    )
    return Estimate(memory, loaded.cards.gpu)


class _CardModelFacts(NamedTuple):
    """A workload on one GPU model: corrections, reasons why it cannot run, fixed overhead, and the program's spread."""

    own: tuple[Correction, ...]
    unsupported: tuple[str, ...]
    overhead: FixedOverhead
    spread: Spread


class _DeviceEstimate(NamedTuple):
    """Estimate for cards that hold the same memory: framework overhead, peak need and verdict."""

    kind: _CardModelFacts
    estimated: FrameworkOverhead
    overhead: FrameworkOverhead
    need: ByteInterval
    fit: CardFit


def _device_estimates(
    resolved: ResolvedWorkload,
    program: SoftwareMemory[Any],
    placed: Iterable[LoadedCards],
    corrections: tuple[Correction, ...],
) -> list[tuple[LoadedCards, _DeviceEstimate]]:
    """Return each group in `placed` with its estimate; groups with equal memory contents are computed once."""
    known: dict[tuple[int, ExtraMicroBatches, int], _DeviceEstimate] = {}
    facts_by_card: dict[int, _CardModelFacts] = {}
    estimates = []
    for loaded in placed:
        # By identity: cards and timelines that are the same are the same objects here, and hashing them takes longer.
        card_key = id(loaded.cards.gpu)
        if card_key not in facts_by_card:
            facts_by_card[card_key] = _card_model_facts(resolved, program, loaded.cards.gpu, corrections)
        contents_key = (id(loaded.timeline), loaded.extra, card_key)
        if contents_key not in known:
            known[contents_key] = _device_estimate(resolved.workload, loaded, facts_by_card[card_key])
        estimates.append((loaded, known[contents_key]))
    return estimates


def _card_model_facts(
    resolved: ResolvedWorkload, program: SoftwareMemory[Any], gpu: Gpu | None, corrections: tuple[Correction, ...]
) -> _CardModelFacts:
    """Return corrections, reasons why the workload cannot run, and fixed overhead on the GPU model `gpu`."""
    architecture, workload = resolved
    own = (
        applicable_corrections(corrections, workload, architecture.model_type, gpu.id if gpu else None)
        if corrections
        else ()
    )
    reasons = program.unsupported_reasons(workload, gpu) if gpu else ()
    return _CardModelFacts(own, reasons, fixed_overhead(gpu), program.spread_of(workload))


def _device_estimate(workload: Training | Inference, loaded: LoadedCards, facts: _CardModelFacts) -> _DeviceEstimate:
    """Return the estimate for cards that hold the memory `loaded`: overhead, peak need and verdict."""
    cards, plain = loaded.cards, loaded.timeline
    need = (
        corrected_timeline(loaded.timeline_with_all_micro_batches(), facts.own).need() if facts.own else loaded.need()
    )
    estimated = _overhead_of(plain, facts, need)
    overhead = corrected_overhead(estimated, facts.own) if facts.own else estimated
    held = _need_with_overhead(facts.spread.around(need.held, need.stored), overhead)
    gpu_id = cards.gpu.id if cards.gpu else ""
    reasons = (*facts.unsupported, *_card_reasons(cards.gpu, workload, held.bytes, plain.host_bytes))
    fit = _started(judge_bytes(held, cards.usable, workload.other_processes_bytes, reasons, gpu_id), plain)
    return _DeviceEstimate(facts, estimated, overhead, held, fit)


def _overhead_of(timeline: PhaseSnapshots, facts: _CardModelFacts, need: PeakNeed) -> FrameworkOverhead:
    """Return the framework's overhead beside the tensors of `timeline`."""
    return framework_overhead(facts.overhead, timeline.dynamic, need.largest, timeline.threads, timeline.unsplit_bytes)


def _free_memory_sort_key(fit: CardFit) -> tuple[bool, int]:
    """Return the sort key of verdicts: first on cards that cannot run the workload, then by free memory, then need."""
    free = fit.free_bytes
    return (not fit.unsupported, -fit.total_bytes if free is None else free)


def _fit_sort_key(fit: CardFit) -> float:
    """Return the fit probability as sort key, −1 if unknown, so that the least likely card comes first."""
    return -1.0 if fit.fit_probability is None else fit.fit_probability


def _device_table(
    devices: list[tuple[LoadedCards, _DeviceEstimate]], workload: Training | Inference
) -> tuple[DeviceShare, ...]:
    """Return one table row per group of equal cards; without a chosen card, rows for pipeline stages only."""
    staged = workload.parallel.pipeline > 1
    if not staged and not devices[0][1].fit.gpu_id:
        return ()
    rows = []
    for loaded, device in devices:
        stage, layers = (loaded.stage, loaded.layers) if staged else (None, None)
        rows.append(device_share(device.fit, loaded.cards.number, stage, layers))
    return tuple(rows)


def _offloaded_bytes(placed: Iterable[LoadedCards]) -> int | None:
    """Return the bytes that all cards together offload to host memory or disk, None without offloading."""
    offloaded = [
        loaded.timeline.host_bytes * loaded.cards.number for loaded in placed if loaded.timeline.host_bytes is not None
    ]
    return sum(offloaded) if offloaded else None


def fits_on(
    architecture: Architecture,
    workload: Training | Inference,
    cards: Iterable[tuple[Gpu, UsableMemory | None]],
    count: int = 1,
    corrections: tuple[Correction, ...] = (),
) -> Iterator[CardFit]:
    """Yield the verdict of `estimate_memory` for each of `cards` without the breakdown, fast enough for a catalog."""
    resolved = resolve_workload(architecture, workload, count)
    filled_workload, program = resolved.workload, memory_of(*resolved)
    by_class: dict[Hashable, tuple[LoadedCards, PeakNeed]] = {}
    for gpu, usable in cards:
        card_class = card_class_of(program, filled_workload, CardGroup(gpu, usable))
        if card_class not in by_class:
            placed = [
                (loaded_cards, loaded_cards.need())
                for loaded_cards in place_workload(*resolved, program, (CardGroup(gpu, usable, count),))
            ]
            by_class[card_class] = max(placed, key=lambda cards_and_need: cards_and_need[1].held.bytes)
        loaded, plain_need = by_class[card_class]
        kind = _card_model_facts(resolved, program, gpu, corrections)
        need = corrected_timeline(loaded.timeline_with_all_micro_batches(), kind.own).need() if kind.own else plain_need
        overhead = _overhead_of(loaded.timeline, kind, need)
        held = _need_with_overhead(kind.spread.around(need.held, need.stored), corrected_overhead(overhead, kind.own))
        reasons = (*kind.unsupported, *_card_reasons(gpu, filled_workload, held.bytes, loaded.timeline.host_bytes))
        fit = judge_bytes(held, usable, filled_workload.other_processes_bytes, reasons, gpu.id)
        fit = _started(fit, loaded.timeline)
        pool = loaded.timeline.pool
        yield fit._replace(pool_sequences=pool.capacity(usable.bytes).sequences) if pool and usable else fit


def _need_with_overhead(need: ByteInterval, overhead: FrameworkOverhead) -> ByteInterval:
    """Return the peak need including the framework's overhead, with bounds."""
    return ByteInterval(need.low + overhead.low, need.bytes + overhead.total, need.high + overhead.high)


def fullest_timeline(
    architecture: Architecture, workload: Training | Inference, card_class: Hashable = None
) -> PhaseSnapshots:
    """Return the snapshots of the card with the highest peak memory, without the framework's overhead.

    `workload` has its defaults filled in. Some programs' defaults depend on `card_class`.
    """
    if not is_distributed(workload):
        return memory_of(architecture, workload).timeline(architecture, workload, card_class)
    from planner.memory.parallel.ranks import timelines_by_stage  # most commands are about one card

    timelines = [timeline for _, timeline in timelines_by_stage(architecture, workload, card_class)]
    return max(timelines, key=lambda timeline: timeline.peak().total)


def _card_reasons(
    gpu: Gpu | None, workload: Training | Inference, card_bytes: int, host_bytes: int | None
) -> tuple[str, ...]:
    """Return the reasons why the workload cannot run on `gpu` that follow from the card itself."""
    if gpu is None:
        return ()
    alone = (ALONE,) if gpu.mig_slice is not None and is_distributed(workload) else ()
    return (*alone, *_shared_memory_reasons(gpu, card_bytes, host_bytes))


def _started(fit: CardFit, timeline: PhaseSnapshots) -> CardFit:
    """Return `fit`, but without a verdict if it would fit and a program of `timeline` does not start."""
    if not (timeline.refusal and fit.likely):
        return fit
    return fit._replace(verdict=None, fit_probability=None, unsupported=(timeline.refusal,))


def _shared_memory_reasons(gpu: Gpu, card_bytes: int, host_bytes: int | None) -> tuple[str, ...]:
    """Return the reason why CPU and GPU together need more than the memory that they share, empty if they do not."""
    memory = gpu.memory_bytes if gpu.unified_memory else None
    if memory is None or not host_bytes or card_bytes + host_bytes <= memory:
        return ()
    return (
        f"CPU and GPU share {memory / GIB:,.1f} GiB, but {(card_bytes + host_bytes) / GIB:,.1f} GiB are needed, "
        f"{host_bytes / GIB:,.1f} GiB of them by the CPU",
    )


def _correction_notes(corrections: tuple[Correction, ...], applied: tuple[Correction, ...]) -> Iterator[str]:
    """Yield one note for each correction: applied, or not applicable to this run."""
    for correction in corrections:
        yield applied_correction_note(correction) if correction in applied else unused_correction_note(correction)


def _estimate_notes(
    architecture: Architecture, workload: Training | Inference, program: SoftwareMemory[Any]
) -> tuple[str, ...]:
    """Return the notes on a workload that do not depend on the card."""
    notes = list(architecture.reader_notes)
    if architecture.kind == "vision-language" and not workload.images:
        text_alone = (
            "The estimate includes the vision tower's parameters, but no images and no activations of the tower."
        )
        notes.append(text_alone + (_NO_IMAGES if isinstance(workload, Training) else ""))
    length = workload.sequence_length if isinstance(workload, Training) else workload.context_length
    if architecture.max_context and length and length > architecture.max_context:
        notes.append(f"{length:,} tokens exceed the model's maximum context length of {architecture.max_context:,}.")
    if isinstance(workload, Training) or workload.profile == DEFAULT:
        notes += _recurrence_notes(architecture)
    return (*notes, *program.notes(workload))


_NO_IMAGES: Final = " Without images it gets no gradients either; set images to count them."
_RECURRENT_KERNELS: Final = {
    "mamba": "mamba-ssm and causal-conv1d",
    "mamba2": "mamba-ssm and causal-conv1d",
    "gated-delta-net": "flash-linear-attention and causal-conv1d",
}
"""Packages whose kernels transformers 5.23 runs layers with a state with, if they are installed."""


def _recurrence_notes(architecture: Architecture) -> Iterator[str]:
    """Yield a note on each package of kernels that the estimate assumes for layers with a recurrent state."""
    layers = [group.layer for stack in architecture.stacks for group in stack.groups]
    mixers = [mixer for layer in layers for mixer in (layer.mixer, layer.second_mixer) if isinstance(mixer, StateMixer)]
    for packages in dict.fromkeys(_RECURRENT_KERNELS[one.name] for one in mixers if one.name in _RECURRENT_KERNELS):
        yield (
            f"Layers with a recurrent state are assumed to run the kernels of {packages}. If these are not installed, "
            "transformers computes the recurrence with operators of PyTorch, which hold far more activations."
        )


def _cache_pool_notes(pool: CachePool | None, workload: Training | Inference) -> Iterator[str]:
    """Yield the capacity of a paged KV cache, and a warning if it is too small for `workload`."""
    if pool is None or not isinstance(workload, Inference):
        return
    own = serving_support(workload.profile)
    title = (own.settings.model_fields[own.memory_fraction].title or "").lower()
    yield (
        f"At a {title} of {100 * pool.utilization:.0f} %, the KV cache gets {pool.bytes / GIB:,.1f} GiB: "
        f"{pool.tokens:,} tokens, or {int(pool.sequences):,} sequences of {workload.context_length or 1:,}."
    )
    if pool.sequences < workload.batch:
        yield (
            f"The KV cache is too small for {workload.batch:,} sequences at once: raise {own.memory_fraction}, or let "
            "requests queue."
        )
