"""Recording of one traced run: every allocation and free, in order, with its origin."""

from typing import Annotated, Final, Literal, Self

from pydantic import ConfigDict, FailFast, Field, model_validator

from planner.base import Spec
from planner.memory.result import PhaseName
from planner.trace.facts import CATEGORIES, TraceDifference
from planner.trace.request import TraceRequest

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
