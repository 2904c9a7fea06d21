"""Results of a memory estimate: terms with formula and source, phases, devices, and the verdict."""

from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from planner.base import Spec, record

TermName = Literal[
    "weights",
    "draft",
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
    "other_models",
    "engine",
    "communication",
    "framework_overhead",
]
PhaseName = Literal[
    "load",
    "generate",
    "score",
    "forward",
    "loss",
    "backward",
    "step",
    "sync",
    "prefill",
    "decode",
    "encode-text",
    "encode-image",
    "denoise",
    "decode-image",
]
TermCertainty = Literal["exact", "measured", "assumed"]
"""Certainty of a term. exact: counted; measured: formula checked against traces; assumed: taken from other cards."""
Verdict = Literal["fits", "tight", "does-not-fit"]


@record
class Symbol:
    """A variable in a term's formula, with its value, its meaning, and where the value comes from."""

    name: str
    value: int | float | str
    meaning: str
    origin: Literal["model", "workload", "card", "format", "library", "trace"]


@record
class TermPart:
    """A named part of a memory term with its bytes, such as the CUDA context within the overhead."""

    name: str
    bytes: int
    formula: str
    source: str


@record
class Term:
    """A named amount of memory with its formula, its lower and upper bound, and its source."""

    name: TermName
    """What the memory holds, such as weights or the KV cache."""
    bytes: int
    """Expected size."""
    formula: str
    """Formula in symbols; its value is `bytes`."""
    symbols: tuple[Symbol, ...]
    """The formula's variables with their values and where these come from."""
    source: str
    """File, paper or measurement that the formula follows."""
    certainty: TermCertainty
    """Whether the amount is counted, checked against traces, or assumed."""
    low_bytes: int
    """Lower bound; equals `bytes` where the amount is certain."""
    high_bytes: int
    """Upper bound; equals `bytes` where the amount is certain."""
    parts: tuple[TermPart, ...] = ()
    """Named parts, such as the CUDA context within the overhead."""

    def __hash__(self) -> int:  # terms are keys of many caches, and few have the same formula and amount
        return hash((self.name, self.bytes, self.formula))


@record
class TermShare:
    """Bytes of one memory term in one phase."""

    name: TermName
    bytes: int


@record
class Phase:
    """Peak memory of one phase of the run, and the terms alive at that peak."""

    name: PhaseName
    bytes: int
    shares: tuple[TermShare, ...]
    explanation: str


@record
class DeviceShare:
    """Memory and verdict of a group of `count` GPUs that hold the same amounts.

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
    """Capacity of the KV cache that an engine allocates on the GPU, as vLLM logs it: "GPU KV cache size"."""

    bytes: int
    tokens: int
    sequences: float
    """Sequences of the workload's length for which it has room."""
    utilization: float
    """The engine's memory fraction: of the whole GPU, or of what is free at a moment of its own."""
    reserved_bytes: int
    """Memory that the engine takes of the GPU in all, with weights, cache and buffers."""


@record
class CertainBytes:
    """Peak memory in bytes, split by the certainty of its terms; the parts sum to the whole peak."""

    exact: int
    measured: int
    assumed: int


def bytes_by_certainty(terms: Iterable[Term]) -> CertainBytes:
    """Return the bytes of the peak's `terms`, split by their certainty."""
    counted = {"exact": 0, "measured": 0, "assumed": 0}
    for term in terms:
        counted[term.certainty] += term.bytes
    return CertainBytes(**counted)


class MemoryResult(Spec):
    """Peak memory of the device with the least free memory, which is row `fullest` of the devices, and its terms.

    `low_bytes` and `high_bytes` are the largest of any phase, so that they never fall as the workload grows.
    """

    total_bytes: int
    """Peak memory of the process on the fullest device, as nvidia-smi shows it: reserved memory and GPU context."""
    low_bytes: int
    """Peak that is not reached in one case in twenty."""
    high_bytes: int
    """Peak that is exceeded in one case in twenty."""
    allocated_bytes: int
    """Bytes in use in PyTorch's allocator at the peak (`torch.cuda.max_memory_allocated`)."""
    reserved_bytes: int
    """Allocated bytes and the allocator's slack (`torch.cuda.max_memory_reserved`)."""
    peak_phase: PhaseName
    """Phase with the highest memory."""
    terms: tuple[Term, ...]
    """Amounts alive in the peak phase, which sum to `total_bytes` exactly."""
    phases: tuple[Phase, ...]
    """Peak memory of each phase of the run."""
    certain_bytes: CertainBytes = Field(default_factory=lambda fields: bytes_by_certainty(fields["terms"]))
    """`total_bytes` by the certainty of its terms."""
    capacity_bytes: int | None = None
    """Usable memory of the device; None without a GPU, or if it is unknown."""
    capacity_low_bytes: int | None = None
    """Lowest usable memory that was measured or is assumed."""
    capacity_high_bytes: int | None = None
    """Highest usable memory that was measured or is assumed."""
    capacity_source: str | None = None
    """Where the usable memory comes from."""
    other_processes_bytes: int = 0
    """Memory of the device that other programs use."""
    free_bytes: int | None = None
    """Usable memory that is left at the peak; negative where memory is missing."""
    verdict: Verdict | None = None
    """Whether it fits, by `fit_probability`; None without a GPU, or if the plan cannot run on it."""
    fit_probability: float | None = None
    """Probability that it fits, from 0 to 1."""
    unsupported: tuple[str, ...] = ()
    """Reasons why the plan cannot run on the GPU; empty if it can."""
    per_gpu: tuple[DeviceShare, ...] = ()
    """Memory and verdict of each group of equal devices."""
    fullest: int = 0
    """Index in `per_gpu` of the device with the least free memory, which the result is for."""
    host_bytes: int | None = None
    """RAM of the machine that the plan needs; None if it is not estimated."""
    disk_bytes: int | None = None
    """Space on the disk that the plan needs for offloading; None without it."""
    cache_pool: CachePool | None = None
    """KV cache that an engine such as vLLM allocates in advance."""
    at_least_cards: int | None = None
    """Fewest GPUs that could hold the plan if they share all that can be shared; None if no number can."""
    notes: tuple[str, ...] = ()
    """Assumptions and warnings, as sentences."""

    @property
    def peak(self) -> Phase:
        """Return the phase with the highest memory."""
        return next(phase for phase in self.phases if phase.name == self.peak_phase)

    @property
    def cache_pool_bounds(self) -> tuple[int, int] | None:
        """Return the least and the most bytes of the engine's cache pool, None without one.

        The pool is what the other terms leave of a fixed share: it is smallest where these are at their upper bound.
        """
        if self.cache_pool is None:
            return None
        others = [term for term in self.terms if term.name not in ("kv_cache", "state")]
        low = self.cache_pool.bytes - sum(term.high_bytes - term.bytes for term in others)
        return max(low, 0), self.cache_pool.bytes + sum(term.bytes - term.low_bytes for term in others)

    def term(self, name: str) -> Term | None:
        """Return the memory term called `name`, None if it is not alive at the peak."""
        return next((term for term in self.terms if term.name == name), None)
