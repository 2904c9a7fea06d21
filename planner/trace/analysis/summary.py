"""Facts of a recording for use in a plan."""

from collections import Counter
from functools import lru_cache
from hashlib import sha256
from typing import Final

from planner.memory.result import PhaseName
from planner.trace.allocator.replay import minimum_capacity_bytes, replay
from planner.trace.allocator.settings import AllocatorSettings
from planner.trace.analysis.live_memory import LiveMemory, alive_at, allocation_origin, live_memory
from planner.trace.facts import CATEGORIES, CategoryShare, Difference, TracedFacts, TracedPhase
from planner.trace.recording import Span, TraceRecording

_DEFAULTS: Final = AllocatorSettings()


@lru_cache(maxsize=2)
def facts_of(recording: TraceRecording, settings: AllocatorSettings = _DEFAULTS) -> TracedFacts:
    """Return the facts of `recording`, with the reserved bytes under the allocator's `settings`."""
    phases = phases_of(recording, live_memory(recording.allocations))
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
        digest=digest_of(recording),
    )


def digest_of(recording: TraceRecording) -> str:
    """Return the SHA-256 of the JSON of `recording`, by which it is stored."""
    return sha256(recording.model_dump_json().encode()).hexdigest()


def phases_of(recording: TraceRecording, course: LiveMemory) -> tuple[TracedPhase, ...]:
    """Return each phase of `recording` at its highest memory over all steps, in the order in which they first ran."""
    highest: dict[PhaseName, tuple[int, Span]] = {}
    for span in recording.spans:
        place = course.highest(span.start, span.end)
        known = highest.get(span.name)
        if known is None or course.totals[place] > course.totals[known[0]]:
            highest[span.name] = (place, span)
    return tuple(_phase(recording, course, place, span) for place, span in highest.values())


def merge_differences(differences: tuple[Difference, ...]) -> tuple[Difference, ...]:
    """Return `differences` merged by name, with summed bytes; differing places are left out."""
    found: dict[str, Difference] = {}
    for one in differences:
        other = found.get(one.name)
        found[one.name] = one.evolve(
            bytes=one.bytes + (other.bytes if other else 0),
            low_bytes=one.low_bytes + (other.low_bytes if other else 0),
            high_bytes=one.high_bytes + (other.high_bytes if other else 0),
            place=one.place if other is None or other.place == one.place else "",
        )
    return tuple(found.values())


def _phase(recording: TraceRecording, course: LiveMemory, place: int, span: Span) -> TracedPhase:
    columns = recording.allocations
    sizes, counts = Counter[int](), Counter[int]()
    for number in alive_at(columns, course.times[place]):
        sizes[columns.category[number]] += columns.bytes[number]
        counts[columns.category[number]] += 1
    return TracedPhase(
        name=span.name,
        explanation=_explanation(recording, course.origins[place], span),
        shares=tuple(
            CategoryShare(category=category, bytes=sizes[index], count=counts[index])
            for index, category in enumerate(CATEGORIES)
            if counts[index]
        ),
    )


def _explanation(recording: TraceRecording, number: int | None, span: Span) -> str:
    origin = allocation_origin(recording, number)
    if span.name == "load" or not origin.operator:
        return "parameters and buffers are on the card"
    return f"reached {_when(span, recording.request.task)}by {origin}"


def _when(span: Span, task: str) -> str:
    if span.name == "decode":
        return f"at token {span.step + 1:,} "
    return f"in step {span.step + 1} " if task == "training" else ""
