"""What one traced run did: every allocation and free, in order, with where it came from."""

from typing import Final, Literal

from pydantic import ConfigDict

from planner.base import Spec
from planner.memory.result import PhaseName
from planner.trace.request import TraceRequest

RECORDING_VERSION: Final = 1

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
CATEGORIES: Final[tuple[Category, ...]] = (
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
)


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


class Span(Spec):
    """A phase of the run: the events from `start` up to, but without, `end`. Steps and answered tokens count from 0."""

    name: PhaseName
    step: int
    start: int
    end: int


class Environment(Spec):
    """What the trace was made with."""

    planner: str
    python: str
    torch: str
    transformers: str | None
    tested: bool
    """Whether this version of PyTorch is one that tracing was tested with."""


class Difference(Spec):
    """Something the trace assumed, or that no dispatcher sees, with how much it may matter.

    `bytes` are in the recording already; the truth lies between `low_bytes` and `high_bytes` instead of them.
    """

    name: str
    explanation: str
    source: str
    bytes: int = 0
    low_bytes: int = 0
    high_bytes: int = 0
    place: str = ""


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
    spans: tuple[Span, ...]
    differences: tuple[Difference, ...] = ()
    notes: tuple[str, ...] = ()
    flops: int | None = None
    """Floating-point operations of the last step: two for each multiplication with addition."""
    seconds: float = 0.0
    """How long the trace itself took."""
