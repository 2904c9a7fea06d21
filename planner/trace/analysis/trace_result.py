"""Complete result of a trace from a recording and a card. Pure: the same recording gives the same result."""

from bisect import bisect_left
from functools import lru_cache
from itertools import accumulate
from typing import Final, NamedTuple

from planner.hardware.gpu import Gpu
from planner.hardware.usable import UsableMemory
from planner.trace.allocator.replay import FailedAllocation, replay
from planner.trace.allocator.settings import DEFAULTS, AllocatorSettings
from planner.trace.analysis.live_memory import (
    LiveMemory,
    allocation_origin,
    live_memory,
    module_shares,
    peak_moment,
    span_at,
)
from planner.trace.analysis.memory import allocator_capacity_bytes, traced_memory
from planner.trace.analysis.summary import facts_of
from planner.trace.facts import CATEGORIES, TracedFacts
from planner.trace.recording import NEVER_FREED, Allocations, TraceRecording
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


def reservation(
    recording: TraceRecording, settings: AllocatorSettings = DEFAULTS, capacity_bytes: int | None = None
) -> Reservation:
    """Return the run's reserved memory with at most `capacity_bytes`, up to where it runs out of memory."""
    replayed = replay(recording.allocations, settings, capacity_bytes)
    failed = replayed.out_of_memory
    return Reservation(
        settings=settings.text,
        reserved_bytes=replayed.reserved_bytes,
        allocated_bytes=replayed.allocated_bytes,
        largest_free_block_bytes=replayed.largest_free_block_bytes,
        segments=replayed.segments,
        fragmentation_fraction=replayed.fragmentation_fraction,
        out_of_memory=None if failed is None else _explain(recording, failed),
    )


def _explain(recording: TraceRecording, failed: FailedAllocation) -> OutOfMemory:
    span, origin = span_at(recording.spans, failed.time), allocation_origin(recording, failed.index)
    return OutOfMemory(
        time=failed.time,
        step=span.step,
        phase=span.name,
        bytes=failed.bytes,
        allocated_bytes=failed.allocated_bytes,
        reserved_bytes=failed.reserved_bytes,
        operator=origin.operator,
        module=origin.module,
        line=origin.line,
    )


_MOST_POINTS: Final = 800


def downsampled_timeline(recording: TraceRecording, course: LiveMemory) -> Timeline:
    """Return at most 800 points of `course`: the highest of each of as many intervals of equal length."""
    places = _highest_places(course)
    times = [course.times[place] for place in places]
    origins = [allocation_origin(recording, course.origins[place]) for place in places]
    return Timeline(
        times=tuple(times),
        series=_series(recording.allocations, times),
        operators=tuple(origin.operator for origin in origins),
        modules=tuple(origin.module for origin in origins),
        lines=tuple(origin.line for origin in origins),
        spans=recording.spans,
    )


def _highest_places(course: LiveMemory) -> list[int]:
    count = len(course.times)
    stretch = max(ceil_div(count - 1, _MOST_POINTS), 1)
    return [
        max(range(start, min(start + stretch, count)), key=course.totals.__getitem__)
        for start in range(1, count, stretch)
    ]


def _series(allocations: Allocations, times: list[int]) -> tuple[CategorySeries, ...]:
    """Return the live bytes of each category at `times`: allocations up to each of them, less frees."""
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
    """Return the memory that `recording` needs, the origin of its peak, and whether it fits on `gpu`.

    The analysis without the card is cached, so that the same recording on another card takes one replay.
    """
    found = _analysis(recording, settings)
    memory = traced_memory(found.facts, gpu, usable, count, other_processes_bytes)
    available = None if usable is None else usable.bytes - other_processes_bytes
    capacity = None if available is None else allocator_capacity_bytes(found.facts, gpu, available)
    return TraceResult.model_validate(
        {
            **{name: getattr(memory, name) for name in type(memory).model_fields},
            "request": recording.request,
            "environment": recording.environment,
            "parameters": recording.parameters,
            "trainable_parameters": recording.trainable_parameters,
            "timeline": found.timeline,
            "peak_moment": found.peak,
            "modules": found.modules,
            "reservation": reservation(recording, settings, capacity),
            "differences": recording.differences,
            "flops": recording.flops,
            "seconds": recording.seconds,
        }
    )


class _Analysis(NamedTuple):
    """Analysis of a recording that does not depend on the card."""

    facts: TracedFacts
    timeline: Timeline
    peak: PeakMoment
    modules: tuple[ModuleShare, ...]


@lru_cache(maxsize=2)
def _analysis(recording: TraceRecording, settings: AllocatorSettings) -> _Analysis:
    course = live_memory(recording.allocations)
    peak = peak_moment(recording, course)
    return _Analysis(
        facts=facts_of(recording, settings),
        timeline=downsampled_timeline(recording, course),
        peak=peak,
        modules=module_shares(recording, peak.time),
    )
