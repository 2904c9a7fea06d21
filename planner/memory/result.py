"""The answer of the estimator: terms, phases and the verdict, each byte with its reason."""

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
"""exact: counted; measured: by a formula that was checked against networks that ran; assumed: from other cards."""
Verdict = Literal["fits", "tight", "does-not-fit"]


@dataclass(frozen=True, slots=True)
class Symbol:
    """One letter of a formula, with its value here and where the value comes from."""

    name: str
    value: int | float | str
    meaning: str
    origin: Literal["model", "workload", "card", "format", "library", "trace"]


@dataclass(frozen=True, slots=True)
class Part:
    """A named share of a term, such as the CUDA context within the overhead."""

    name: str
    bytes: int
    formula: str
    source: str


class Term(Spec):
    """A named amount of memory and how it was found.

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
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class TermShare:
    """What one term holds in one phase."""

    name: TermName
    bytes: int


@dataclass(frozen=True, slots=True)
class Phase:
    """A snapshot of the run and what is alive in it."""

    name: PhaseName
    bytes: int
    shares: tuple[TermShare, ...]
    explanation: str


@dataclass(frozen=True, slots=True)
class DeviceShare:
    """What one of the cards holds; `count` cards hold the same.

    `stage` is where they stand in a pipeline, from 0, and `layers` are those that they hold.
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
    """What an engine that fills the card with its cache has room for: vLLM's "GPU KV cache size"."""

    bytes: int
    tokens: int
    sequences: float
    utilization: float


@dataclass(frozen=True, slots=True)
class CertainBytes:
    """Bytes of the peak by how sure they are; together they are all of them."""

    exact: int
    measured: int
    assumed: int


def _by_certainty(fields: dict[str, Any]) -> CertainBytes:
    counted = {"exact": 0, "measured": 0, "assumed": 0}
    for term in fields["terms"]:
        counted[term.certainty] += term.bytes
    return CertainBytes(**counted)


class MemoryResult(Spec):
    """The peak of one device and its parts; of several that differ, the one that has the least left: row `fullest`.

    `terms` are those alive in `peak_phase`; they sum to `total_bytes` exactly, as `certain_bytes` do. One case in
    twenty lies below `low_bytes` and one above `high_bytes`; each is the largest of any phase, so that it never falls
    as the workload grows. `fit_probability` (0 to 1) is what `verdict` stands for. `allocated_bytes` is what PyTorch's
    allocator hands out at the peak (`torch.cuda.max_memory_allocated`), `reserved_bytes` adds what it holds back, and
    `total_bytes` adds the device context: what nvidia-smi shows for the process.
    """

    total_bytes: int
    low_bytes: int
    high_bytes: int
    allocated_bytes: int
    reserved_bytes: int
    peak_phase: PhaseName
    terms: tuple[Term, ...]
    phases: tuple[Phase, ...]
    certain_bytes: CertainBytes = Field(default_factory=_by_certainty)
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
        """Return the phase that decides."""
        return next(phase for phase in self.phases if phase.name == self.peak_phase)

    def term(self, name: str) -> Term | None:
        """Return the term called `name`, if it is alive at the peak."""
        return next((term for term in self.terms if term.name == name), None)
