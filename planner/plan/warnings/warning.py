"""A fact about a plan that surprises people, and the same plan with a change to hold it against."""

from typing import Final, Literal

from planner.base import Spec
from planner.memory.estimate import estimate_memory
from planner.memory.result import MemoryResult
from planner.models.architecture import Architecture
from planner.plan.evaluate import Evaluation
from planner.units import GIB

WarningName = Literal[
    "loss-peak",
    "emulated-bf16",
    "resident-experts",
    "eager-scores",
    "fp32",
    "unscaled-fp16",
    "adapter-activations",
    "zero-3-buffers",
    "repeated-cache",
    "communicators",
    "uneven-stages",
    "software-ends",
]

WORTH_SAYING: Final = 0.1
"""The share of everything below which a fact about bytes is no surprise."""
SAME_PLAN: Final = "the estimate of the same plan with that one change"


class PlanWarning(Spec):
    """A fact about a plan that surprises people; `name` tells the kinds apart."""

    name: WarningName
    sentence: str
    source: str


def saved_by(evaluation: Evaluation, architecture: Architecture, **changes: object) -> int:
    """Return by how much the peak falls with `changes` of the workload."""
    return evaluation.memory.total_bytes - estimated_with(evaluation, architecture, **changes).total_bytes


def estimated_with(evaluation: Evaluation, architecture: Architecture, **changes: object) -> MemoryResult:
    """Return the estimate of the same plan with `changes` of the workload."""
    plan = evaluation.plan
    return estimate_memory(
        architecture,
        plan.workload.evolve(**changes),
        evaluation.gpu,
        count=plan.count,
        corrections=plan.corrections,
    )


def gib(size: int) -> str:
    """Return `size` bytes as `12.3 GiB`."""
    return f"{size / GIB:,.1f} GiB"
