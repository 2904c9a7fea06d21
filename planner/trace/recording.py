"""What one traced run did: every allocation and free, in order, with where it came from."""

from typing import Final, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from planner.base import Spec
from planner.memory.result import PhaseName
from planner.trace.facts import CATEGORIES, Difference
from planner.trace.request import TraceRequest

RECORDING_VERSION: Final = 1
NEVER_FREED: Final = -1


class Allocations(Spec):
    """The allocations as columns, in the order they were made; all have one entry for each allocation.

    Times count allocations and frees: each event has a time of its own, from 0 on. `freed` is -1 for what is alive at
    the end. `category`, `operator`, `module`, `line` and `shape` are places in the recording's lists of names.
    """

    model_config = ConfigDict(defer_build=True)

    bytes: tuple[int, ...]
    made: tuple[int, ...]
    freed: tuple[int, ...]
    category: tuple[int, ...]
    operator: tuple[int, ...]
    module: tuple[int, ...]
    line: tuple[int, ...]
    shape: tuple[int, ...]

    @model_validator(mode="after")
    def _columns_agree(self) -> Self:
        columns = [getattr(self, name) for name in type(self).model_fields]
        if len({len(column) for column in columns}) > 1:
            raise ValueError("the columns have different lengths")
        if min((*self.bytes, *self.made), default=0) < 0:
            raise ValueError("bytes and times cannot be negative")
        if any(freed <= made and freed != NEVER_FREED for made, freed in zip(self.made, self.freed, strict=True)):
            raise ValueError("an allocation is freed before it is made")
        return self


class Span(Spec):
    """A phase of the run: the events from `start` up to, but without, `end`. Steps and answered tokens count from 0."""

    name: PhaseName
    step: int = Field(ge=0)
    start: int = Field(ge=0)
    end: int = Field(ge=0)


class Environment(Spec):
    """What the trace was made with."""

    planner: str
    python: str
    torch: str
    transformers: str | None
    tested: bool
    """Whether this version of PyTorch is one that tracing was tested with."""


class ModuleInfo(Spec):
    """A module of the traced network: its path, its class and its own parameters (not those of its children)."""

    path: str
    class_name: str
    parameters: int
    trainable: int


class Recording(Spec):
    """One traced run, as it is saved: facts only; what follows from them is computed when it is read."""

    model_config = ConfigDict(defer_build=True)

    recording_version: Literal[1] = RECORDING_VERSION
    request: TraceRequest
    environment: Environment
    modules: tuple[ModuleInfo, ...]
    parameters: int
    trainable_parameters: int
    allocations: Allocations
    operators: tuple[str, ...]
    module_paths: tuple[str, ...]
    lines: tuple[str, ...]
    shapes: tuple[str, ...]
    spans: tuple[Span, ...] = Field(min_length=1)
    differences: tuple[Difference, ...] = ()
    notes: tuple[str, ...] = ()
    flops: int | None = None
    """Floating-point operations of the last step: two for each multiplication with addition."""
    convolution_flops: int | None = None
    """Those of convolutions among them."""
    product_elements: int | None = None
    """Elements that products, convolutions and attention put out in the last step."""
    operator_calls: int | None = None
    """Operators that ran in the last step."""
    seconds: float = 0.0
    """How long the trace itself took."""

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        columns = self.allocations
        known = (
            ("category", columns.category, CATEGORIES),
            ("operator", columns.operator, self.operators),
            ("module", columns.module, self.module_paths),
            ("line", columns.line, self.lines),
            ("shape", columns.shape, self.shapes),
        )
        for what, places, names in known:
            if places and not (min(places) >= 0 and max(places) < len(names)):
                raise ValueError(f"the {what} of an allocation is not in the list of {len(names)} names")
        return self
