"""Result of a trace: the estimator's result, with the timeline and details that only a trace has."""

from planner.base import Spec
from planner.memory.result import MemoryResult, PhaseName
from planner.trace.recording import Category, Environment, RecordedPhase, TraceDifference
from planner.trace.request import TraceRequest


class CategorySeries(Spec):
    """Live bytes of one category at each point of the timeline."""

    category: Category
    bytes: tuple[int, ...]


class Timeline(Spec):
    """Live bytes over the run, in total and by category, with the origin of the last allocation at each point.

    `times` count allocations and frees. Points are left out, but never the peak. `operators`, `modules` and `lines`
    are the origin of the last allocation before each point.
    """

    times: tuple[int, ...]
    series: tuple[CategorySeries, ...]
    operators: tuple[str, ...]
    modules: tuple[str, ...]
    lines: tuple[str, ...]
    spans: tuple[RecordedPhase, ...]


class LiveAllocationGroup(Spec):
    """Allocations alive at the peak that have category, module, operator, line and shape in common.

    There are `count` of them, with a total size of `bytes`. The smallest groups are merged by category.
    """

    bytes: int
    count: int
    category: Category
    module: str
    operator: str
    line: str
    shape: str


class PeakMoment(Spec):
    """Time at which live memory peaks, and the allocation that reaches the peak."""

    bytes: int
    time: int
    step: int
    phase: PhaseName
    operator: str
    module: str
    line: str
    alive: tuple[LiveAllocationGroup, ...]


class ModuleShare(Spec):
    """Memory of one module and its submodules at the peak, by category."""

    path: str
    class_name: str
    parameters: int
    bytes: int
    shares: tuple[CategorySeries, ...]
    """Live bytes at the peak, one entry per category."""


class OutOfMemory(Spec):
    """First allocation that a GPU with the replayed capacity cannot serve."""

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
    """Memory that the caching allocator reserves on the GPU for the run.

    `reserved_bytes` is the maximum (`torch.cuda.max_memory_reserved`); the other figures apply when it is reached. An
    allocation of `largest_free_block_bytes` could be served without reserving more memory.
    """

    settings: str
    reserved_bytes: int
    allocated_bytes: int
    largest_free_block_bytes: int
    segments: int
    fragmentation_fraction: float
    out_of_memory: OutOfMemory | None = None


class TraceResult(MemoryResult):
    """Result of a trace: the fields of the estimator's result for one rank, and the trace's details."""

    request: TraceRequest
    environment: Environment
    parameters: int
    trainable_parameters: int
    timeline: Timeline
    peak_moment: PeakMoment
    modules: tuple[ModuleShare, ...]
    reservation: Reservation
    differences: tuple[TraceDifference, ...]
    run_notes: tuple[str, ...] = ()
    """How the traced run was made: inputs, loss, chosen kernels, and what a script would have started or written."""
    flops: int | None
    seconds: float
