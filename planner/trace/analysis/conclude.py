"""From a recording and a card to the whole answer of a trace. Pure: the same recording gives the same answer."""

from functools import lru_cache
from typing import Final, NamedTuple

from planner.hardware.gpu import Gpu
from planner.hardware.usable import UsableMemory
from planner.trace.allocator.settings import AllocatorSettings
from planner.trace.analysis.course import course_of
from planner.trace.analysis.memory import allocator_capacity, traced_memory
from planner.trace.analysis.peak import module_shares, peak_moment
from planner.trace.analysis.reserved import reservation
from planner.trace.analysis.summary import facts_of
from planner.trace.analysis.timeline import timeline_of
from planner.trace.facts import TracedFacts
from planner.trace.recording import Recording
from planner.trace.result import ModuleShare, PeakMoment, Timeline, TraceResult

_DEFAULTS: Final = AllocatorSettings()


def conclude(
    recording: Recording,
    gpu: Gpu | None = None,
    usable: UsableMemory | None = None,
    count: int = 1,
    other_processes_bytes: int = 0,
    settings: AllocatorSettings = _DEFAULTS,
) -> TraceResult:
    """Return what `recording` needs, where its peak comes from, and whether a card of `gpu` has that.

    The answer without the card is kept, so that the same recording on another card takes one replay.
    """
    found = _analysis(recording, settings)
    memory = traced_memory(found.facts, gpu, usable, count, other_processes_bytes)
    available = None if usable is None else usable.bytes - other_processes_bytes
    capacity = None if available is None else allocator_capacity(found.facts, gpu, available)
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
    """What a recording says whatever the card is."""

    facts: TracedFacts
    timeline: Timeline
    peak: PeakMoment
    modules: tuple[ModuleShare, ...]


@lru_cache(maxsize=2)
def _analysis(recording: Recording, settings: AllocatorSettings) -> _Analysis:
    course = course_of(recording.allocations)
    peak = peak_moment(recording, course)
    return _Analysis(
        facts=facts_of(recording, settings),
        timeline=timeline_of(recording, course),
        peak=peak,
        modules=module_shares(recording, peak.time),
    )
