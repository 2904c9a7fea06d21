"""Recording of one traced run, every allocation and free in order with its origin, and its summary for plans."""

from typing import Annotated, Final, Literal, Self, get_args

from pydantic import ConfigDict, FailFast, Field, model_validator

from planner.base import Spec
from planner.memory.result import PhaseName
from planner.trace.request import TraceRequest

Category = Literal[
    "parameters",
    "adapters",
    "buffers",
    "inputs",
    "gradients",
    "optimizer_states",
    "activations",
    "kv_cache",
    "communication",
    "temporaries",
]
CATEGORIES: Final[tuple[Category, ...]] = get_args(Category)


class TraceDifference(Spec):
    """Possible difference between trace and real run: an assumption, or memory that PyTorch does not report."""

    name: str
    """What may differ, such as the workspace of a kernel."""
    explanation: str
    """Why it may differ, as a sentence."""
    source: str
    """Where the bounds come from."""
    bytes: int = 0
    """Bytes that are included in the recording."""
    low_bytes: int = 0
    """Lower bound of the true size."""
    high_bytes: int = 0
    """Upper bound of the true size."""
    place: str = ""
    """Source line that causes it; empty if there is none."""


class CategoryShare(Spec):
    """Live allocations in one category: `count` allocations with a total size of `bytes`."""

    category: Category
    bytes: int = Field(ge=0)
    count: int = Field(ge=0)


class TracedPhase(Spec):
    """Live memory at the peak of one phase, over all steps."""

    name: PhaseName
    """Phase of the run, such as the backward pass."""
    explanation: str
    """When in the phase the peak is, as a sentence."""
    shares: tuple[CategoryShare, ...]
    """Live allocations at the peak, by category."""

    @property
    def bytes(self) -> int:
        """Return the total size of the live allocations in bytes."""
        return sum(share.bytes for share in self.shares)


class TracedFacts(Spec):
    """Results of a trace that do not depend on the GPU."""

    request: TraceRequest
    """What was traced, and how."""
    torch: str
    """Version of PyTorch that made the trace."""
    tested: bool
    """Whether the trace is tested with this version of PyTorch."""
    parameters: int = Field(ge=0)
    """Parameters of the module."""
    trainable_parameters: int = Field(ge=0)
    """Parameters that receive gradients."""
    phases: tuple[TracedPhase, ...] = Field(min_length=1)
    """Live memory at the peak of each phase."""
    reserved_bytes: int
    """Memory that the caching allocator reserves on a GPU that is large enough."""
    least_reserved_bytes: int
    """Memory with which the run still completes on a small GPU, where the allocator releases cached memory."""
    largest_tensor_bytes: int = Field(ge=0)
    """Size of the largest tensor."""
    differences: tuple[TraceDifference, ...] = ()
    """What may differ in a real run."""
    notes: tuple[str, ...] = ()
    """What was assumed or left out, as sentences."""
    flops: int | None = None
    """Floating-point operations of the last step; None if they were not counted."""
    convolution_flops: int | None = Field(default=None, ge=0, description="floating-point operations of convolutions")
    product_elements: int | None = Field(
        default=None,
        ge=0,
        description="output elements of matrix products, convolutions and attention in the last step",
    )
    operator_calls: int | None = Field(default=None, ge=0, description="operators run in the last step")
    digest: str
    """SHA-256 digest of the recording."""

    @property
    def peak(self) -> TracedPhase:
        """Return the earliest phase with the most live bytes."""
        return max(self.phases, key=lambda phase: phase.bytes)

    @property
    def allocated_bytes(self) -> int:
        """Return the live memory at the peak in bytes."""
        return self.peak.bytes

    @property
    def lower_margin_bytes(self) -> int:
        """Return by how many bytes a real run's peak may be below the traced peak."""
        return sum(max(difference.bytes - difference.low_bytes, 0) for difference in self.differences)

    @property
    def upper_margin_bytes(self) -> int:
        """Return by how many bytes a real run's peak may be above the traced peak."""
        return sum(max(difference.high_bytes - difference.bytes, 0) for difference in self.differences)

    def reserved_bytes_within(self, available_bytes: int) -> int:
        """Return the bytes that the allocator reserves under a limit, at least the minimum that the run needs."""
        return min(self.reserved_bytes, max(self.least_reserved_bytes, available_bytes))

    @model_validator(mode="after")
    def _check_reserved_covers_allocated(self) -> Self:
        if not self.allocated_bytes <= self.least_reserved_bytes <= self.reserved_bytes:
            raise ValueError(f"the bytes reserved are fewer than needed for the {self.allocated_bytes:,} allocated")
        return self


RECORDING_VERSION: Final = 1
NEVER_FREED: Final = -1


class Allocations(Spec):
    """Allocations as columns of equal length, in the order in which they were made.

    A time is the number of the event, an allocation or a free, from 0 on. `freed` is -1 for allocations alive at the
    end. `category`, `operator`, `module`, `line` and `shape` are indices into the recording's lists of names.
    """

    model_config = ConfigDict(defer_build=True)

    bytes: Annotated[tuple[int, ...], FailFast()]
    made: Annotated[tuple[int, ...], FailFast()]
    freed: Annotated[tuple[int, ...], FailFast()]
    category: Annotated[tuple[int, ...], FailFast()]
    operator: Annotated[tuple[int, ...], FailFast()]
    module: Annotated[tuple[int, ...], FailFast()]
    line: Annotated[tuple[int, ...], FailFast()]
    shape: Annotated[tuple[int, ...], FailFast()]

    @model_validator(mode="after")
    def _check_columns(self) -> Self:
        columns = [getattr(self, name) for name in type(self).model_fields]
        if len({len(column) for column in columns}) > 1:
            raise ValueError("the columns have different lengths")
        if min((*self.bytes, *self.made), default=0) < 0:
            raise ValueError("bytes and times cannot be negative")
        if any(freed <= made and freed != NEVER_FREED for made, freed in zip(self.made, self.freed, strict=True)):
            raise ValueError("an allocation is freed before it is allocated")
        return self


class RecordedPhase(Spec):
    """A phase: the events from `start` to `end`, `end` excluded. Steps and generated tokens count from 0."""

    name: PhaseName
    step: int = Field(ge=0)
    start: int = Field(ge=0)
    end: int = Field(ge=0)


class Environment(Spec):
    """Versions of Python, PyTorch and other software with which a trace was made."""

    planner: str
    python: str
    torch: str
    transformers: str | None
    tested: bool
    """Whether tracing was tested with this version of PyTorch."""


class ModuleInfo(Spec):
    """A module of the traced network: its path, its class, and the parameters that are not in its children."""

    path: str
    class_name: str
    parameters: int = Field(ge=0)
    trainable: int = Field(ge=0)


class TraceRecording(Spec):
    """One traced run as stored on disk: only raw events and totals, from which all results are computed."""

    model_config = ConfigDict(defer_build=True)

    recording_version: Literal[1] = RECORDING_VERSION
    request: TraceRequest
    environment: Environment
    modules: Annotated[tuple[ModuleInfo, ...], FailFast()]
    parameters: int = Field(ge=0)
    trainable_parameters: int = Field(ge=0)
    allocations: Allocations
    operators: Annotated[tuple[str, ...], FailFast()]
    module_paths: Annotated[tuple[str, ...], FailFast()]
    lines: Annotated[tuple[str, ...], FailFast()]
    shapes: Annotated[tuple[str, ...], FailFast()]
    spans: Annotated[tuple[RecordedPhase, ...], FailFast()] = Field(min_length=1)
    differences: tuple[TraceDifference, ...] = ()
    notes: Annotated[tuple[str, ...], FailFast()] = ()
    flops: int | None = Field(default=None, ge=0)
    """Floating-point operations of the last step; a multiply-add counts as two."""
    convolution_flops: int | None = Field(default=None, ge=0)
    """Floating-point operations of the convolutions in the last step."""
    product_elements: int | None = Field(default=None, ge=0)
    """Output elements of matrix products, convolutions and attention in the last step."""
    operator_calls: int | None = Field(default=None, ge=0)
    """Operators run in the last step."""
    seconds: float = Field(default=0.0, ge=0.0)
    """Duration of tracing in seconds, not of a real run."""

    @model_validator(mode="after")
    def _check_indices(self) -> Self:
        columns = self.allocations
        name_lists = (
            ("category", columns.category, CATEGORIES),
            ("operator", columns.operator, self.operators),
            ("module", columns.module, self.module_paths),
            ("line", columns.line, self.lines),
            ("shape", columns.shape, self.shapes),
        )
        for column_name, indices, names in name_lists:
            if indices and not (min(indices) >= 0 and max(indices) < len(names)):
                raise ValueError(f"the {column_name} of an allocation is not in the list of {len(names)} names")
        return self
