"""The answer of a trace: the estimator's result, with the timeline and what only a trace can tell."""

from planner.base import Spec
from planner.memory.result import MemoryResult, PhaseName
from planner.trace.facts import Category, Difference
from planner.trace.recording import Environment, Span
from planner.trace.request import TraceRequest


class Series(Spec):
    """The live bytes of one category at each point of the timeline."""

    category: Category
    bytes: tuple[int, ...]


class Timeline(Spec):
    """Live bytes over the run.

    `times` count allocations and frees. Between two points the course is left out, but never its highest moment:
    `operators`, `modules` and `lines` say what made the last allocation before each point.
    """

    times: tuple[int, ...]
    series: tuple[Series, ...]
    operators: tuple[str, ...]
    modules: tuple[str, ...]
    lines: tuple[str, ...]
    spans: tuple[Span, ...]


class Alive(Spec):
    """Allocations of one kind that are alive at the peak: `count` of them, `bytes` together."""

    bytes: int
    count: int
    category: Category
    module: str
    operator: str
    line: str
    shape: str


class PeakMoment(Spec):
    """Where the most bytes were alive, and what reached it."""

    bytes: int
    time: int
    step: int
    phase: PhaseName
    operator: str
    module: str
    line: str
    alive: tuple[Alive, ...]


class ModuleShare(Spec):
    """What one module, with all inside it, holds at the peak, by category."""

    path: str
    class_name: str
    parameters: int
    bytes: int
    shares: tuple[Series, ...]
    """One entry each: the bytes of a category at the peak."""


class OutOfMemory(Spec):
    """The first allocation that a card of `capacity_bytes` cannot serve."""

    time: int
    step: int
    phase: PhaseName
    bytes: int
    allocated_bytes: int
    reserved_bytes: int
    operator: str
    module: str
    line: str


class Reservation(Spec):
    """What the caching allocator takes from the card to serve the run.

    `reserved_bytes` is the most it held at once (`torch.cuda.max_memory_reserved`); the other figures are of that
    moment. `largest_free_block_bytes` is what could be served without asking the card again.
    """

    settings: str
    reserved_bytes: int
    allocated_bytes: int
    largest_free_block_bytes: int
    segments: int
    fragmentation_fraction: float
    out_of_memory: OutOfMemory | None = None


class TraceResult(MemoryResult):
    """The peak of one rank, traced: the keys of the estimator's result, and what led to them."""

    request: TraceRequest
    environment: Environment
    parameters: int
    trainable_parameters: int
    timeline: Timeline
    peak_moment: PeakMoment
    modules: tuple[ModuleShare, ...]
    reservation: Reservation
    differences: tuple[Difference, ...]
    flops: int | None
    seconds: float
