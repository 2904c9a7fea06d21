"""Time of a workload on the chosen GPUs."""

from typing import TypeAlias

from planner.hardware.gpu import Gpu
from planner.models.architecture import Architecture, with_image_size
from planner.performance.result import TimeResult
from planner.performance.setting import TimeSetting
from planner.workload.training import Training
from planner.workload.workload import Inference

GpuCounts: TypeAlias = tuple[tuple[Gpu, int], ...]
"""Kinds of GPUs, each with its count."""

_DEFAULT_SETTING = TimeSetting()


def estimate_time(
    architecture: Architecture,
    workload: Training | Inference,
    cards: GpuCounts,
    setting: TimeSetting = _DEFAULT_SETTING,
    measured_on: Gpu | None = None,
) -> TimeResult:
    """Return the time of one step of `workload`, or one request, on `cards`.

    `workload` has its open choices filled in by `with_defaults`. If there is no estimate, the result has the reason.
    A measured speed in `setting` replaces the estimate; `measured_on` is the GPU that it was measured on if
    that is another one.
    """
    architecture = with_image_size(architecture, workload.image_size)
    # Imported lazily: a plan needs only one of them, and importing takes longer than estimating.
    if isinstance(workload, Training):
        if workload.alignment.method != "none":
            from planner.performance.training.alignment import alignment_time

            return alignment_time(architecture, workload, cards, setting, measured_on)
        from planner.performance.training.estimate import training_time

        return training_time(architecture, workload, cards, setting, measured_on)
    from planner.performance.inference.estimate import inference_time

    return inference_time(architecture, workload, cards, setting, measured_on)
