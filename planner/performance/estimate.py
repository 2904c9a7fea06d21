"""How long a workload takes on the chosen cards."""

from typing import TypeAlias

from planner.hardware.gpu import Gpu
from planner.models.architecture import Architecture
from planner.models.images import at_image_size
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
    measured_on: Gpu | None = None,
) -> TimeResult:
    """Return how long one step of `workload`, or one request, takes on `cards`.

    `workload` has its open choices filled in by `with_defaults`. What cannot be estimated has no figures and says why.
    A measured speed of `setting` takes the place of the estimate; `measured_on` is the kind of card that it is of where
    that is another one.
    """
    architecture = at_image_size(architecture, workload.image_size)
    # Each is imported where it is used: a plan needs one of them, and most of the time they take is to import them.
    if isinstance(workload, Training):
        from planner.performance.training.estimate import training_time

        return training_time(architecture, workload, cards, setting, measured_on)
    from planner.performance.inference.estimate import inference_time

    return inference_time(architecture, workload, cards, setting, measured_on)
