"""Summary of a recording for use in a plan: memory by phase, reserved memory, totals."""

from collections import Counter
from functools import lru_cache
from hashlib import sha256
from typing import Final

from planner.memory.result import PhaseName
from planner.trace.allocator.replay import minimum_capacity_bytes, replay
from planner.trace.allocator.settings import AllocatorSettings
from planner.trace.analysis.live_memory import LiveMemory, alive_at, allocation_origin, live_memory
from planner.trace.facts import CATEGORIES, CategoryShare, TracedFacts, TraceDifference, TracedPhase
from planner.trace.recording import RecordedPhase, TraceRecording

_DEFAULTS: Final = AllocatorSettings()


@lru_cache(maxsize=2)
def facts_of(recording: TraceRecording, settings: AllocatorSettings = _DEFAULTS) -> TracedFacts:
    """Return the summary of `recording` for plans, with the bytes reserved under the allocator's `settings`."""
    phases = traced_phases(recording, live_memory(recording.allocations))
    reserved = replay(recording.allocations, settings).reserved_bytes
    allocated = max(phase.bytes for phase in phases)
    return TracedFacts(
        request=recording.request,
        torch=recording.environment.torch,
        tested=recording.environment.tested,
        parameters=recording.parameters,
        trainable_parameters=recording.trainable_parameters,
        phases=phases,
        reserved_bytes=reserved,
        least_reserved_bytes=minimum_capacity_bytes(recording.allocations, settings, allocated, reserved),
        largest_tensor_bytes=max(recording.allocations.bytes, default=0),
        differences=merge_differences(recording.differences),
        notes=recording.notes,
        flops=recording.flops,
        convolution_flops=recording.convolution_flops,
        product_elements=recording.product_elements,
        operator_calls=recording.operator_calls,
        digest=recording_digest(recording),
    )


def recording_digest(recording: TraceRecording) -> str:
    """Return the SHA-256 digest of a recording's JSON, under which the recording is stored."""
    return sha256(recording.model_dump_json().encode()).hexdigest()


def traced_phases(recording: TraceRecording, live: LiveMemory) -> tuple[TracedPhase, ...]:
    """Return the phases of `recording` in order, each at its peak live memory over all steps."""
    highest: dict[PhaseName, tuple[int, RecordedPhase]] = {}
    for span in recording.spans:
        index = live.peak_index_between(span.start, span.end)
        previous = highest.get(span.name)
        if previous is None or live.totals[index] > live.totals[previous[0]]:
            highest[span.name] = (index, span)
    return tuple(_traced_phase(recording, live, index, span) for index, span in highest.values())


def merge_differences(differences: tuple[TraceDifference, ...]) -> tuple[TraceDifference, ...]:
    """Return one difference per name, with the bytes summed; its `place` is empty if the merged places differ."""
    merged: dict[str, TraceDifference] = {}
    for difference in differences:
        previous = merged.get(difference.name)
        merged[difference.name] = difference.evolve(
            bytes=difference.bytes + (previous.bytes if previous else 0),
            low_bytes=difference.low_bytes + (previous.low_bytes if previous else 0),
            high_bytes=difference.high_bytes + (previous.high_bytes if previous else 0),
            place=difference.place if previous is None or previous.place == difference.place else "",
        )
    return tuple(merged.values())


def _traced_phase(recording: TraceRecording, live: LiveMemory, index: int, span: RecordedPhase) -> TracedPhase:
    """Return the phase `span` with the categories of the allocations alive after the event `index`."""
    columns = recording.allocations
    sizes, counts = Counter[int](), Counter[int]()
    for allocation in alive_at(columns, live.times[index]):
        sizes[columns.category[allocation]] += columns.bytes[allocation]
        counts[columns.category[allocation]] += 1
    return TracedPhase(
        name=span.name,
        explanation=_peak_explanation(recording, live.origins[index], span),
        shares=tuple(
            CategoryShare(category=category, bytes=sizes[category_index], count=counts[category_index])
            for category_index, category in enumerate(CATEGORIES)
            if counts[category_index]
        ),
    )


def _peak_explanation(recording: TraceRecording, allocation: int | None, span: RecordedPhase) -> str:
    """Return a sentence on the allocation with which a phase reaches its peak."""
    origin = allocation_origin(recording, allocation)
    if span.name == "load" or not origin.operator:
        return "parameters and buffers are on the card"
    return f"reached {_step_text(span, recording.request.task)}by {origin}"


def _step_text(span: RecordedPhase, task: str) -> str:
    """Return the step or generated token of a phase as text."""
    if span.name == "decode":
        return f"at token {span.step + 1:,} "
    return f"in step {span.step + 1} " if task == "training" else ""
