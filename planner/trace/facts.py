"""The summary of a trace that travels in a plan: enough to judge any card, without the timeline."""

from typing import Final, Literal, Self, get_args

from pydantic import Field, model_validator

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


class CategoryShare(Spec):
    """What is alive of one category: `count` allocations, `bytes` together."""

    category: Category
    bytes: int = Field(ge=0)
    count: int = Field(ge=0)


class TracedPhase(Spec):
    """A phase at its highest moment over all steps."""

    name: PhaseName
    explanation: str
    shares: tuple[CategoryShare, ...]

    @property
    def bytes(self) -> int:
        """Return what is alive, together."""
        return sum(share.bytes for share in self.shares)


class TracedFacts(Spec):
    """What a trace found, card or no card. `digest` is the SHA-256 of its recording, to find that again.

    `reserved_bytes` are what the caching allocator takes from a card that is large enough. With
    `least_reserved_bytes` it gets through on a small one, where it gives back what it only keeps for later.
    """

    request: TraceRequest
    torch: str
    tested: bool
    parameters: int = Field(ge=0)
    trainable_parameters: int = Field(ge=0)
    phases: tuple[TracedPhase, ...] = Field(min_length=1)
    reserved_bytes: int
    least_reserved_bytes: int
    largest_tensor_bytes: int = Field(ge=0)
    differences: tuple[Difference, ...] = ()
    notes: tuple[str, ...] = ()
    flops: int | None = None
    convolution_flops: int | None = Field(default=None, ge=0, description="of convolutions among them")
    product_elements: int | None = Field(default=None, ge=0, description="that products put out in the last step")
    operator_calls: int | None = Field(default=None, ge=0, description="operators of the last step")
    digest: str

    @property
    def peak(self) -> TracedPhase:
        """Return the phase with the most bytes alive, the earliest of equals."""
        return max(self.phases, key=lambda phase: phase.bytes)

    @property
    def allocated_bytes(self) -> int:
        """Return the bytes alive at the peak."""
        return self.peak.bytes

    @property
    def below_bytes(self) -> int:
        """Return how much less than traced it may be, by the differences."""
        return sum(max(difference.bytes - difference.low_bytes, 0) for difference in self.differences)

    @property
    def above_bytes(self) -> int:
        """Return how much more than traced it may be, by the differences."""
        return sum(max(difference.high_bytes - difference.bytes, 0) for difference in self.differences)

    def reserved_within(self, available_bytes: int) -> int:
        """Return what the allocator takes where it may have `available_bytes`, or the least it needs to get through."""
        return min(self.reserved_bytes, max(self.least_reserved_bytes, available_bytes))

    @model_validator(mode="after")
    def _reserves_what_it_allocates(self) -> Self:
        if not self.allocated_bytes <= self.least_reserved_bytes <= self.reserved_bytes:
            raise ValueError(f"the bytes reserved are fewer than needed for the {self.allocated_bytes:,} allocated")
        return self
