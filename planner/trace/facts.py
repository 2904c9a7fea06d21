"""The summary of a trace that travels in a plan: enough to judge any card, without the timeline."""

from collections import Counter
from hashlib import sha256
from typing import Self

from pydantic import Field, model_validator

from planner.base import Spec
from planner.memory.result import PhaseName
from planner.trace.allocator import replay
from planner.trace.allocator_settings import AllocatorSettings
from planner.trace.course import Course, alive_at, course_of, maker_of
from planner.trace.least import least_capacity
from planner.trace.recording import CATEGORIES, Category, Difference, Recording, Span
from planner.trace.request import TraceRequest

_DEFAULTS = AllocatorSettings()


class CategoryShare(Spec):
    """What is alive of one category: `count` allocations, `bytes` together."""

    category: Category
    bytes: int = Field(ge=0)
    count: int = Field(ge=0)


class TracedPhase(Spec):
    """A phase at its highest moment over all steps."""

    name: PhaseName
    explanation: str
    shares: tuple[CategoryShare, ...]

    @property
    def bytes(self) -> int:
        """Return what is alive, together."""
        return sum(share.bytes for share in self.shares)


class TracedFacts(Spec):
    """What a trace found, card or no card. `digest` is the SHA-256 of its recording, to find that again.

    `reserved_bytes` are what the caching allocator takes from a card that is large enough. With
    `least_reserved_bytes` it gets through on a small one, where it gives back what it only keeps for later.
    """

    request: TraceRequest
    torch: str
    tested: bool
    parameters: int = Field(ge=0)
    trainable_parameters: int = Field(ge=0)
    phases: tuple[TracedPhase, ...] = Field(min_length=1)
    reserved_bytes: int
    least_reserved_bytes: int
    largest_tensor_bytes: int = Field(ge=0)
    differences: tuple[Difference, ...] = ()
    notes: tuple[str, ...] = ()
    flops: int | None = None
    digest: str

    @property
    def peak(self) -> TracedPhase:
        """Return the phase with the most bytes alive, the earliest of equals."""
        return max(self.phases, key=lambda phase: phase.bytes)

    @property
    def allocated_bytes(self) -> int:
        """Return the bytes alive at the peak."""
        return self.peak.bytes

    @property
    def below_bytes(self) -> int:
        """Return how much less than traced it may be, by the differences."""
        return sum(difference.bytes - difference.low_bytes for difference in self.differences)

    @property
    def above_bytes(self) -> int:
        """Return how much more than traced it may be, by the differences."""
        return sum(difference.high_bytes - difference.bytes for difference in self.differences)

    def reserved_within(self, available_bytes: int) -> int:
        """Return what the allocator takes where it may have `available_bytes`, or the least it needs to get through."""
        return min(self.reserved_bytes, max(self.least_reserved_bytes, available_bytes))

    @model_validator(mode="after")
    def _reserves_what_it_allocates(self) -> Self:
        if not self.allocated_bytes <= self.least_reserved_bytes <= self.reserved_bytes:
            raise ValueError(f"the bytes reserved are fewer than needed for the {self.allocated_bytes:,} allocated")
        return self


def facts_of(recording: Recording, settings: AllocatorSettings = _DEFAULTS) -> TracedFacts:
    """Return the summary of `recording`, whose reserved bytes are those with `settings` of the allocator."""
    return summary(recording, course_of(recording.allocations), settings)


def summary(recording: Recording, course: Course, settings: AllocatorSettings) -> TracedFacts:
    """Return the facts of `recording`, whose live bytes take `course`."""
    phases = phases_of(recording, course)
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
        least_reserved_bytes=least_capacity(recording.allocations, settings, allocated, reserved),
        largest_tensor_bytes=max(recording.allocations.bytes, default=0),
        differences=together(recording.differences),
        notes=recording.notes,
        flops=recording.flops,
        digest=digest_of(recording.model_dump_json()),
    )


def digest_of(text: str) -> str:
    """Return the SHA-256 of a recording's JSON."""
    return sha256(text.encode()).hexdigest()


def phases_of(recording: Recording, course: Course) -> tuple[TracedPhase, ...]:
    """Return each phase of `recording` at the highest moment that it has in any step, in the order they first ran."""
    highest: dict[PhaseName, tuple[int, Span]] = {}
    for span in recording.spans:
        place = course.highest(span.start, span.end)
        known = highest.get(span.name)
        if known is None or course.totals[place] > course.totals[known[0]]:
            highest[span.name] = (place, span)
    return tuple(_phase(recording, course, place, span) for place, span in highest.values())


def together(differences: tuple[Difference, ...]) -> tuple[Difference, ...]:
    """Return `differences` with those of one name made one, their bytes summed and their places left out."""
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


def _phase(recording: Recording, course: Course, place: int, span: Span) -> TracedPhase:
    columns = recording.allocations
    sizes, counts = Counter[int](), Counter[int]()
    for number in alive_at(columns, course.times[place]):
        sizes[columns.category[number]] += columns.bytes[number]
        counts[columns.category[number]] += 1
    return TracedPhase(
        name=span.name,
        explanation=_explanation(recording, course.makers[place], span),
        shares=tuple(
            CategoryShare(category=category, bytes=sizes[index], count=counts[index])
            for index, category in enumerate(CATEGORIES)
            if counts[index]
        ),
    )


def _explanation(recording: Recording, number: int | None, span: Span) -> str:
    maker = maker_of(recording, number)
    if span.name == "load" or not maker.operator:
        return "the parameters and buffers are on the card"
    return f"reached in step {span.step} by {maker}"
