"""An estimate beside the trace of the same run: each part, and by how much they differ."""

from typing import Final, NamedTuple

from planner.memory.result import MemoryResult, TermName
from planner.present import format as fmt
from planner.present.names import PHASE_MOMENTS

_PARTS: Final[tuple[tuple[str, tuple[TermName, ...]], ...]] = (
    ("Weights and adapters", ("weights", "master_weights", "adapters")),
    ("Gradients", ("gradients",)),
    ("Optimizer states", ("optimizer_states",)),
    # Where the one ends and the other begins is a matter of words: a trace sees tensors, not their purpose.
    ("Activations, logits and temporaries", ("activations", "logits", "temporaries", "state")),
    ("KV cache", ("kv_cache",)),
    ("Buffers and inputs", ("buffers",)),
    ("Communication", ("communication",)),
    ("Framework overhead", ("framework_overhead",)),
)


class ComparisonRow(NamedTuple):
    """One part of the peak, estimated and traced."""

    title: str
    estimated_bytes: int
    traced_bytes: int

    @property
    def difference_bytes(self) -> int:
        """Return how much more was estimated than traced."""
        return self.estimated_bytes - self.traced_bytes

    @property
    def difference_fraction(self) -> float | None:
        """Return the difference as a part of what was traced; none where nothing was."""
        return self.difference_bytes / self.traced_bytes if self.traced_bytes else None


def compare(estimate: MemoryResult, traced: MemoryResult) -> tuple[ComparisonRow, ...]:
    """Return the parts that either of them has at its peak, and the total as the last row."""
    rows = (ComparisonRow(title, _sum(estimate, names), _sum(traced, names)) for title, names in _PARTS)
    present = tuple(row for row in rows if row.estimated_bytes or row.traced_bytes)
    return (*present, ComparisonRow("Total", estimate.total_bytes, traced.total_bytes))


def comparison_sentence(estimate: MemoryResult, traced: MemoryResult) -> str:
    """Return the one sentence that says how far the estimate is from the trace."""
    total = compare(estimate, traced)[-1]
    sizes = f"estimated {fmt.size(total.estimated_bytes)}, traced {fmt.size(total.traced_bytes)}"
    if estimate.peak_phase != traced.peak_phase:
        expected, found = PHASE_MOMENTS[estimate.peak_phase], PHASE_MOMENTS[traced.peak_phase]
        sizes += f"; the peak was expected {expected} and found {found}"
    if total.difference_bytes == 0:
        return f"The estimate is exact: {sizes}."
    side = "above" if total.difference_bytes > 0 else "below"
    return f"The estimate is {fmt.precise_percent(abs(total.difference_fraction or 0))} {side} the trace: {sizes}."


def _sum(memory: MemoryResult, names: tuple[TermName, ...]) -> int:
    return sum(term.bytes for term in memory.terms if term.name in names)
