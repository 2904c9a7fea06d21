"""The estimate: from a model, a workload and a card to the peak, its parts and the verdict."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from planner.dtypes import ELEMENT_BYTES
from planner.hardware.gpu import Gpu
from planner.hardware.usable import UsableMemory
from planner.memory.chance import Interval
from planner.memory.corrections import (
    Correction,
    applicable_corrections,
    corrected_overhead,
    corrected_term,
    corrected_timeline,
    correction_note,
    sources,
    unused_note,
)
from planner.memory.engines.pool import cache_pool, pool_notes
from planner.memory.fit import CardFit, at_least_cards, device_share, judge_bytes, platform_notes
from planner.memory.need import Need, need_of
from planner.memory.one_card import one_card, one_card_timeline
from planner.memory.overhead import Overhead, framework_overhead, overhead_term
from planner.memory.parallel.micro_batches import Others, need_with_others, with_others
from planner.memory.parallel.placing import Cards, Loaded, class_of, least_shards, place, spread_notes
from planner.memory.parallel.spread import HeldByRank, Rank, held_by_rank, is_spread
from planner.memory.phases import PhaseSnapshots
from planner.memory.result import DeviceShare, MemoryResult
from planner.memory.software.vllm.setup import CardClass
from planner.memory.support import unsupported_reasons
from planner.models.architecture import Architecture
from planner.models.images import at_image_size
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference, Training


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
    parts of their own. Where the cards do not hold the same, the result is about the one that holds most.

    **Formula**: max over phases of Σ terms, plus the framework's overhead.
    """
    return estimate_on(architecture, workload, (Cards(gpu, usable, count),), corrections)


def estimate_on(
    architecture: Architecture,
    workload: Training | Inference,
    cards: tuple[Cards, ...],
    corrections: tuple[Correction, ...] = (),
) -> MemoryResult:
    """Return the peak memory of the card that has the least left of `cards`, which may differ, and a table of them all.

    The stages of a pipeline take the cards in their order, and have layers in proportion to what is free on each.
    """
    architecture = at_image_size(architecture, workload.image_size)
    filled = with_defaults(workload, architecture, sum([one.number for one in cards]))
    devices = _devices(architecture, filled, place(architecture, filled, cards, held_by_stage), corrections)
    found = min(devices, key=_left) if len(devices) > 1 else devices[0]
    least_likely = min([device.fit for device in devices], key=_chance)
    snapshots, overhead, fit, usable = found.snapshots(), found.overhead, found.fit, found.loaded.cards.usable
    peak = snapshots.peak()
    added = overhead.total - found.estimated.total
    written = corrected_term(overhead_term(found.estimated, snapshots.dynamic), added, sources(found.own))
    terms = tuple(term for term in (*peak.written(), written) if term.bytes)
    allocated = peak.total - (0 if peak.name == "load" else snapshots.outside_bytes) + overhead.workspace
    taken = filled.other_processes_bytes
    pool = cache_pool(snapshots.pool, usable) if snapshots.pool and usable else None
    beside, on_disk = _bytes_beside(devices), filled.parallel.offload == "nvme"
    return MemoryResult(
        total_bytes=fit.total_bytes,
        low_bytes=found.held.low,
        high_bytes=found.held.high,
        allocated_bytes=allocated,
        reserved_bytes=allocated + overhead.slack,
        peak_phase=peak.name,
        terms=terms,
        phases=snapshots.phases(overhead.context + overhead.workspace, overhead.slack),
        capacity_bytes=fit.capacity_bytes,
        capacity_low_bytes=usable.low_bytes if usable else None,
        capacity_high_bytes=usable.high_bytes if usable else None,
        capacity_source=usable.source if usable else None,
        other_processes_bytes=taken,
        free_bytes=fit.free_bytes,
        verdict=least_likely.verdict,
        fit_probability=least_likely.fit_probability,
        unsupported=fit.unsupported,
        per_gpu=_table(devices, filled),
        fullest=devices.index(found),
        host_bytes=None if on_disk else beside,
        disk_bytes=beside if on_disk else None,
        cache_pool=pool,
        at_least_cards=at_least_cards(terms, fit.total_bytes, usable.bytes - taken, least_shards(filled))
        if usable and architecture.stacks
        else None,
        notes=(
            *_correction_notes(corrections, found.own),
            *pool_notes(pool, filled),
            *snapshots.notes,
            *platform_notes(found.loaded.cards.gpu, least_likely, taken),
            *spread_notes(filled, cards),
            *_notes(architecture, filled),
        ),
    )


class _Device(NamedTuple):
    """Cards that hold the same, what is alive on them at the most, and whether it fits."""

    loaded: Loaded
    estimated: Overhead
    overhead: Overhead
    own: tuple[Correction, ...]
    fit: CardFit
    held: Interval

    def snapshots(self) -> PhaseSnapshots:
        """Return what is alive in each phase."""
        return corrected_timeline(with_others(self.loaded.snapshots, self.loaded.others), self.own)


def _devices(
    architecture: Architecture,
    filled: Training | Inference,
    placed: Iterable[Loaded],
    corrections: tuple[Correction, ...],
) -> list[_Device]:
    """Return what stands on each of the cards that are `placed`: stages that hold the same are looked at once."""
    known: dict[tuple[int, Others, Cards], _Device] = {}
    kinds: dict[Gpu | None, _Kind] = {}
    found = []
    for one in placed:
        gpu = one.cards.gpu
        if gpu not in kinds:
            kinds[gpu] = _kind(architecture, filled, gpu, corrections)
        same = (id(one.snapshots), one.others, one.cards)
        if same in known:
            found.append(known[same]._replace(loaded=one))
        else:
            known[same] = _device(filled, one, kinds[gpu])
            found.append(known[same])
    return found


class _Kind(NamedTuple):
    """What a kind of card says of a workload: the corrections that were measured on it, and why it cannot run it."""

    own: tuple[Correction, ...]
    unsupported: tuple[str, ...]


def _kind(
    architecture: Architecture, filled: Training | Inference, gpu: Gpu | None, corrections: tuple[Correction, ...]
) -> _Kind:
    own = applicable_corrections(corrections, filled, architecture.model_type, gpu.id if gpu else None)
    return _Kind(own, unsupported_reasons(filled, gpu) if gpu else ())


def _device(filled: Training | Inference, loaded: Loaded, kind: _Kind) -> _Device:
    gpu, usable, own = loaded.cards.gpu, loaded.cards.usable, kind.own
    plain, others = loaded.snapshots, loaded.others
    need = need_of(corrected_timeline(with_others(plain, others), own)) if own else need_with_others(plain, others)
    estimated = framework_overhead(gpu, plain.dynamic, need.largest, plain.threads)
    overhead = corrected_overhead(estimated, own)
    held = _with_overhead(need.held, overhead)
    fit = judge_bytes(held, usable, filled.other_processes_bytes, kind.unsupported, gpu_id=gpu.id if gpu else "")
    return _Device(loaded, estimated, overhead, own, fit, held)


def _left(device: _Device) -> tuple[bool, int]:
    """Return what orders devices: what cannot run it first, then what is left, or the less the more is needed."""
    free = device.fit.free_bytes
    return (not device.fit.unsupported, -device.fit.total_bytes if free is None else free)


def _chance(fit: CardFit) -> float:
    """Return what orders verdicts: where quantities vary together, all cards have room if the least likely one has."""
    return -1.0 if fit.fit_probability is None else fit.fit_probability


def _table(devices: list[_Device], filled: Training | Inference) -> tuple[DeviceShare, ...]:
    """Return a row for cards that hold the same; without a card only where cards differ."""
    staged = filled.parallel.pipeline > 1
    if not staged and not devices[0].fit.gpu_id:
        return ()
    return tuple(
        device_share(
            device.fit,
            device.loaded.cards.number,
            device.loaded.stage if staged else None,
            device.loaded.layers if staged else None,
        )
        for device in devices
    )


def _bytes_beside(devices: list[_Device]) -> int | None:
    """Return what all cards together keep in RAM or on disk, or none where nothing stays there."""
    held = [
        one.loaded.snapshots.host_bytes * one.loaded.cards.number
        for one in devices
        if one.loaded.snapshots.host_bytes is not None
    ]
    return sum(held) if held else None


def fits_on(
    architecture: Architecture,
    workload: Training | Inference,
    cards: Iterable[tuple[Gpu, UsableMemory | None]],
    count: int = 1,
    corrections: tuple[Correction, ...] = (),
) -> Iterator[CardFit]:
    """Yield the verdict of `estimate_memory` on each of `cards`, in numbers only, so that a whole catalog is quick."""
    architecture = at_image_size(architecture, workload.image_size)
    filled = with_defaults(workload, architecture, count)
    by_class: dict[CardClass, tuple[PhaseSnapshots, Need]] = {}
    for gpu, usable in cards:
        of_card = class_of(filled, gpu)
        if of_card not in by_class:
            estimated = timeline_of(architecture, filled, of_card)
            by_class[of_card] = (estimated, need_of(estimated))
        snapshots, plain = by_class[of_card]
        own = applicable_corrections(corrections, filled, architecture.model_type, gpu.id)
        need = need_of(corrected_timeline(snapshots, own)) if own else plain
        overhead = framework_overhead(gpu, snapshots.dynamic, need.largest, snapshots.threads)
        overhead = corrected_overhead(overhead, own)
        held = _with_overhead(need.held, overhead)
        unsupported = unsupported_reasons(filled, gpu)
        yield judge_bytes(held, usable, filled.other_processes_bytes, unsupported, gpu_id=gpu.id)


def _with_overhead(held: Interval, overhead: Overhead) -> Interval:
    return Interval(held.low + overhead.low, held.bytes + overhead.total, held.high + overhead.high)


@lru_cache(maxsize=512)
def timeline_of(
    architecture: Architecture, workload: Training | Inference, of_card: CardClass = CardClass.OTHER
) -> PhaseSnapshots:
    """Return what is alive in each phase, the framework's overhead aside, on the card that holds most.

    `workload` has its defaults filled in. On `of_card` depend the defaults of vLLM.
    """
    if not is_spread(workload):
        return one_card_timeline(architecture, workload, of_card)
    return max((snapshots for _, snapshots in timelines_by_stage(architecture, workload, of_card)), key=_peak_bytes)


def timelines_by_stage(
    architecture: Architecture, workload: Training | Inference, of_card: CardClass
) -> tuple[tuple[Rank, PhaseSnapshots], ...]:
    """Return what is alive in each phase in each stage of the pipeline."""
    held = held_by_stage(architecture, workload, of_card)
    return tuple((rank, with_others(alone, others)) for rank, alone, others in held)


@lru_cache(maxsize=512)
def held_by_stage(
    architecture: Architecture, workload: Training | Inference, of_card: CardClass, counts: tuple[int, ...] = ()
) -> tuple[HeldByRank, ...]:
    """Return what each stage of the pipeline holds for a micro-batch; `counts` are their layers where given."""
    return held_by_rank(architecture, workload, one_card(of_card), counts)


def _peak_bytes(snapshots: PhaseSnapshots) -> int:
    return snapshots.peak().total


def _correction_notes(corrections: tuple[Correction, ...], own: tuple[Correction, ...]) -> Iterator[str]:
    for correction in corrections:
        yield correction_note(correction) if correction in own else unused_note(correction)


def _notes(architecture: Architecture, workload: Training | Inference) -> tuple[str, ...]:
    notes = list(architecture.reader_notes)
    if architecture.kind == "vision-language" and not (isinstance(workload, Inference) and workload.images):
        notes.append("The vision tower's parameters are counted; images and their activations are not.")
    length = workload.sequence_length if isinstance(workload, Training) else workload.context_length
    if architecture.max_context and length and length > architecture.max_context:
        notes.append(f"{length:,} tokens are more than the {architecture.max_context:,} the model is made for.")
    if isinstance(workload, Inference) and workload.profile == "hf" and workload.kv_cache not in ELEMENT_BYTES:
        notes.append("A quantised cache needs an engine that has one: its size is exact, scratch is not estimated.")
    return tuple(notes)
