"""Complete result of a trace from a recording and a card. Pure: the same recording gives the same result."""

from bisect import bisect_left
from functools import lru_cache
from itertools import accumulate
from typing import Final, NamedTuple

from planner.hardware.gpu import Gpu
from planner.hardware.usable import UsableMemory
from planner.trace.allocator_settings import DEFAULT_SETTINGS, AllocatorSettings
from planner.trace.analysis.live_memory import (
    LiveMemory,
    allocation_origin,
    live_memory,
    module_shares,
    peak_moment,
    phase_at,
)
from planner.trace.analysis.memory import allocator_capacity_bytes, facts_of, traced_memory
from planner.trace.recording import CATEGORIES, NEVER_FREED, Allocations, TracedFacts, TraceRecording
from planner.trace.replay import FailedAllocation, replay
from planner.trace.result import (
    CategorySeries,
    ModuleShare,
    OutOfMemory,
    PeakMoment,
    Reservation,
    Timeline,
    TraceResult,
)
from planner.units import ceil_div


def replay_reservation(
    recording: TraceRecording, settings: AllocatorSettings = DEFAULT_SETTINGS, capacity_bytes: int | None = None
) -> Reservation:
    """Return the memory that the allocator reserves for the run, within `capacity_bytes` or until memory runs out."""
    replayed = replay(recording.allocations, settings, capacity_bytes)
    failed_allocation = replayed.out_of_memory
    return Reservation(
        settings=settings.text,
        reserved_bytes=replayed.reserved_bytes,
        allocated_bytes=replayed.allocated_bytes,
        largest_free_block_bytes=replayed.largest_free_block_bytes,
        segments=replayed.segments,
        fragmentation_fraction=replayed.fragmentation_fraction,
        out_of_memory=None if failed_allocation is None else _out_of_memory_event(recording, failed_allocation),
    )


def _out_of_memory_event(recording: TraceRecording, failed_allocation: FailedAllocation) -> OutOfMemory:
    """Return the failed allocation with its step and origin."""
    span, origin = (
        phase_at(recording.spans, failed_allocation.time),
        allocation_origin(recording, failed_allocation.index),
    )
    return OutOfMemory(
        time=failed_allocation.time,
        step=span.step,
        phase=span.name,
        bytes=failed_allocation.bytes,
        allocated_bytes=failed_allocation.allocated_bytes,
        reserved_bytes=failed_allocation.reserved_bytes,
        operator=origin.operator,
        module=origin.module,
        line=origin.line,
    )


_MAX_POINTS: Final = 800


def downsampled_timeline(recording: TraceRecording, live: LiveMemory) -> Timeline:
    """Return at most 800 points of `live`: the highest point in each of up to 800 intervals of equal length."""
    indices = _interval_peak_indices(live)
    times = [live.times[index] for index in indices]
    origins = [allocation_origin(recording, live.origins[index]) for index in indices]
    return Timeline(
        times=tuple(times),
        series=_category_series(recording.allocations, times),
        operators=tuple(origin.operator for origin in origins),
        modules=tuple(origin.module for origin in origins),
        lines=tuple(origin.line for origin in origins),
        spans=recording.spans,
    )


def _interval_peak_indices(live: LiveMemory) -> list[int]:
    """Return the index of the event with the most live bytes in each of up to 800 intervals of equal length."""
    count = len(live.times)
    interval_length = max(ceil_div(count - 1, _MAX_POINTS), 1)
    return [
        max(range(start, min(start + interval_length, count)), key=live.totals.__getitem__)
        for start in range(1, count, interval_length)
    ]


def _category_series(allocations: Allocations, times: list[int]) -> tuple[CategorySeries, ...]:
    """Return the live bytes by category at `times`: bytes allocated up to each time, less bytes freed."""
    changes = [[0] * (len(times) + 1) for _ in CATEGORIES]
    columns = (allocations.category, allocations.bytes, allocations.made, allocations.freed)
    for category, size, made, freed in zip(*columns, strict=True):
        changes[category][bisect_left(times, made)] += size
        if freed != NEVER_FREED:
            changes[category][bisect_left(times, freed)] -= size
    return tuple(
        CategorySeries(category=category, bytes=tuple(accumulate(change[:-1])))
        for category, change in zip(CATEGORIES, changes, strict=True)
        if any(change)
    )


_DEFAULTS: Final = AllocatorSettings()


def conclude(
    recording: TraceRecording,
    gpu: Gpu | None = None,
    usable: UsableMemory | None = None,
    count: int = 1,
    other_processes_bytes: int = 0,
    settings: AllocatorSettings = _DEFAULTS,
) -> TraceResult:
    """Return a trace's result: the peak memory of `recording`, the peak's origin, and whether the run fits on `gpu`.

    The part of the analysis that does not depend on the GPU is cached: another GPU takes only one replay.
    """
    analysis = _analyze_recording(recording, settings)
    memory = traced_memory(analysis.facts, gpu, usable, count, other_processes_bytes)
    available_bytes = None if usable is None else usable.bytes - other_processes_bytes
    capacity_bytes = None if available_bytes is None else allocator_capacity_bytes(analysis.facts, gpu, available_bytes)
    return TraceResult.model_validate(
        {
            **{name: getattr(memory, name) for name in type(memory).model_fields},
            "request": recording.request,
            "environment": recording.environment,
            "parameters": recording.parameters,
            "trainable_parameters": recording.trainable_parameters,
            "timeline": analysis.timeline,
            "peak_moment": analysis.peak,
            "modules": analysis.modules,
            "reservation": replay_reservation(recording, settings, capacity_bytes),
            "differences": recording.differences,
            "run_notes": recording.notes,
            "flops": recording.flops,
            "seconds": recording.seconds,
        }
    )


class _RecordingAnalysis(NamedTuple):
    """Analysis of a recording that does not depend on the card."""

    facts: TracedFacts
    timeline: Timeline
    peak: PeakMoment
    modules: tuple[ModuleShare, ...]


@lru_cache(maxsize=2)
def _analyze_recording(recording: TraceRecording, settings: AllocatorSettings) -> _RecordingAnalysis:
    """Return the analysis of a recording: facts, live memory, peak and timeline."""
    live = live_memory(recording.allocations)
    peak = peak_moment(recording, live)
    return _RecordingAnalysis(
        facts=facts_of(recording, settings),
        timeline=downsampled_timeline(recording, live),
        peak=peak,
        modules=module_shares(recording, peak.time),
    )
