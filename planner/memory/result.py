"""Results of a memory estimate: terms with formula and source, phases, devices, and the verdict."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from pydantic import Field

from planner.base import Spec

TermName = Literal[
    "weights",
    "gradients",
    "master_weights",
    "optimizer_states",
    "activations",
    "logits",
    "kv_cache",
    "state",
    "buffers",
    "temporaries",
    "adapters",
    "communication",
    "framework_overhead",
]
PhaseName = Literal[
    "load", "forward", "loss", "backward", "step", "prefill", "decode", "encode-text", "denoise", "decode-image"
]
TermCertainty = Literal["exact", "measured", "assumed"]
"""Certainty of a term. exact: counted; measured: formula checked against traces; assumed: taken from other cards."""
Verdict = Literal["fits", "tight", "does-not-fit"]


@dataclass(frozen=True, slots=True)
class Symbol:
    """A variable in a term's formula, with its value, its meaning, and where the value comes from."""

    name: str
    value: int | float | str
    meaning: str
    origin: Literal["model", "workload", "card", "format", "library", "trace"]


@dataclass(frozen=True, slots=True)
class TermPart:
    """A named part of a memory term with its bytes, such as the CUDA context within the overhead."""

    name: str
    bytes: int
    formula: str
    source: str


class Term(Spec):
    """A named amount of memory with its formula, its lower and upper bound, and its source.

    `low_bytes` and `high_bytes` bound it; they equal `bytes` where the amount is certain.
    """

    name: TermName
    bytes: int
    formula: str
    symbols: tuple[Symbol, ...]
    source: str
    certainty: TermCertainty
    low_bytes: int
    high_bytes: int
    parts: tuple[TermPart, ...] = ()


@dataclass(frozen=True, slots=True)
class TermShare:
    """Bytes of one memory term in one phase."""

    name: TermName
    bytes: int


@dataclass(frozen=True, slots=True)
class Phase:
    """Peak memory of one phase of the run, and the terms alive at that peak."""

    name: PhaseName
    bytes: int
    shares: tuple[TermShare, ...]
    explanation: str


@dataclass(frozen=True, slots=True)
class DeviceShare:
    """Memory and verdict of a group of `count` cards that hold the same amounts.

    `stage` is their stage of a pipeline, from 0, and `layers` the number of its layers.
    """

    gpu: str | None
    count: int
    total_bytes: int
    capacity_bytes: int | None
    free_bytes: int | None
    verdict: Verdict | None
    fit_probability: float | None = None
    stage: int | None = None
    layers: int | None = None


class CachePool(Spec):
    """Capacity of the KV cache that an engine allocates on the card, as vLLM logs it: "GPU KV cache size"."""

    bytes: int
    tokens: int
    sequences: float
    utilization: float


@dataclass(frozen=True, slots=True)
class CertainBytes:
    """Peak memory in bytes, split by the certainty of its terms; the parts sum to the whole peak."""

    exact: int
    measured: int
    assumed: int


def _bytes_by_certainty(fields: dict[str, Any]) -> CertainBytes:
    """Return the peak's bytes split by certainty, computed from the result's `terms`."""
    counted = {"exact": 0, "measured": 0, "assumed": 0}
    for term in fields["terms"]:
        counted[term.certainty] += term.bytes
    return CertainBytes(**counted)


class MemoryResult(Spec):
    """Peak memory of the device with the least free memory, which is row `fullest` of the devices, and its terms.

    `terms` are those alive in `peak_phase`; they sum to `total_bytes` exactly, as do `certain_bytes`. One case in
    twenty is below `low_bytes` and one above `high_bytes`; each is the largest of any phase, so that it never falls
    as the workload grows. `verdict` follows from `fit_probability` (0 to 1). `allocated_bytes` are in use in PyTorch's
    allocator at the peak (`torch.cuda.max_memory_allocated`), `reserved_bytes` adds its slack, and `total_bytes` adds
    the device context: the figure of nvidia-smi for the process.
    """

    total_bytes: int
    low_bytes: int
    high_bytes: int
    allocated_bytes: int
    reserved_bytes: int
    peak_phase: PhaseName
    terms: tuple[Term, ...]
    phases: tuple[Phase, ...]
    certain_bytes: CertainBytes = Field(default_factory=_bytes_by_certainty)
    capacity_bytes: int | None = None
    capacity_low_bytes: int | None = None
    capacity_high_bytes: int | None = None
    capacity_source: str | None = None
    other_processes_bytes: int = 0
    free_bytes: int | None = None
    verdict: Verdict | None = None
    fit_probability: float | None = None
    unsupported: tuple[str, ...] = ()
    per_gpu: tuple[DeviceShare, ...] = ()
    fullest: int = 0
    host_bytes: int | None = None
    disk_bytes: int | None = None
    cache_pool: CachePool | None = None
    at_least_cards: int | None = None
    notes: tuple[str, ...] = ()

    @cached_property
    def peak(self) -> Phase:
        """Return the phase with the highest memory."""
        return next(phase for phase in self.phases if phase.name == self.peak_phase)

    def term(self, name: str) -> Term | None:
        """Return the memory term called `name`, None if it is not alive at the peak."""
        return next((term for term in self.terms if term.name == name), None)
