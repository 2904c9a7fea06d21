"""Uncertainty of the time of a training step: the deviation of measured steps from the estimate."""

from typing import Final

from planner.hardware.gpu import Gpu
from planner.performance.efficiency import SIZES, MatrixFormat, is_training_measured, matrix_family
from planner.performance.training.step import TrainingStep

MEASURED_SPREAD: Final = 1.22
"""Four of five measured steps of dense networks on a measured family lie within this factor, their source left out of
the fit; the number of cards makes no difference."""
UNMEASURED_SPREAD: Final = 1.5
"""Spread factor for card families without measurements: nine of ten rows of families left out lie within a third, and
other fits to the same speeds leave 1.6 for unknown cards."""
EXPERT_SPREAD: Final = 1.3
"""Factor by which networks with routed experts deviate more: within 1.59 for four of five."""
WAITING_SPREAD: Final = 2.0
"""Factor by which a step deviates more if it is all waiting, for the host or other cards: 1.72 at one half."""


def step_spread_factor(step: TrainingStep, gpu: Gpu, narrow: MatrixFormat) -> float:
    """Return the factor by which a step may be longer or shorter; one case in ten lies beyond each end.

    **Formula**: the factor of the family, times one for routed experts, times one that grows with the share of the step
    in which the card waits.

    **Source**: benchmarks/throughput_classes.py --leave-one-out; benchmarks/throughput_accuracy.py prints how many
    measured rows lie within.
    """
    found = MEASURED_SPREAD if is_training_measured(matrix_family(gpu), SIZES[narrow]) else UNMEASURED_SPREAD
    found *= EXPERT_SPREAD if step.batch.forward.expert_layers else 1.0
    return float(found * WAITING_SPREAD ** waiting_share(step))


def waiting_share(step: TrainingStep) -> float:
    """Return the share of a step in which the card waits for launches or for other cards."""
    passes = step.passes
    waiting = step.micro_batches * (passes.seconds - passes.device) + sum([one.exposed for one in step.transfers])
    return waiting / step.busy
