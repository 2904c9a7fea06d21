"""How long a workload takes on the chosen cards."""

from typing import TypeAlias

from planner.hardware.gpu import Gpu
from planner.models.architecture import Architecture
from planner.performance.result import TimeResult
from planner.performance.setting import TimeSetting
from planner.workload.training import Training
from planner.workload.workload import Inference

CardCounts: TypeAlias = tuple[tuple[Gpu, int], ...]
"""Kinds of cards, each with the number of them."""

_AS_IS = TimeSetting()


def estimate_time(
    architecture: Architecture,
    workload: Training | Inference,
    cards: CardCounts,
    setting: TimeSetting = _AS_IS,
) -> TimeResult:
    """Return how long one step of `workload`, or one request, takes on `cards`.

    `workload` has its open choices filled in by `with_defaults`. What cannot be estimated has no figures and says why.
    """
    if isinstance(workload, Training):
        return TimeResult(task="training", kind="step", unsupported="not estimated")
    return TimeResult(task="inference", kind="service", unsupported="not estimated")
