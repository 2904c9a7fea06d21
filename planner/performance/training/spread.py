"""Uncertainty of a training step's time: the deviation of measured steps from the estimate."""

from typing import Final

from planner.hardware.gpu import Gpu
from planner.performance.efficiency import INPUT_BITS, MatrixFormat, is_training_measured, matrix_family
from planner.performance.training.step import TrainingStep

MEASURED_SPREAD: Final = 1.22
"""Spread factor of measured card families: four of five measured steps of dense networks lie within it, with the source
of the measurement left out of the fit; the number of cards makes no difference."""
UNMEASURED_SPREAD: Final = 1.5
"""Spread factor of card families without measurements: nine of ten measured steps of families left out of the fit lie
within a third, and other fits to the same speeds leave 1.6 for unknown cards."""
EXPERT_SPREAD: Final = 1.3
"""Additional spread factor of networks with routed experts: four of five measured steps lie within a factor of 1.59 in
total."""
WAITING_SPREAD: Final = 2.0
"""Additional spread factor of a step that consists of waits for the host or other cards; a step that waits half of the
time has a total factor of 1.72."""


def step_spread_factor(step: TrainingStep, gpu: Gpu, narrow: MatrixFormat) -> float:
    """Return the factor by which a step may take longer or shorter; one case in ten lies beyond each end.

    **Formula**: the factor of the family, times one for routed experts, times one that grows with the share of the step
    in which the card waits.

    **Source**: benchmarks/throughput_classes.py --leave-one-out; benchmarks/throughput_accuracy.py prints how many
    measured rows lie within.
    """
    found = MEASURED_SPREAD if is_training_measured(matrix_family(gpu), INPUT_BITS[narrow]) else UNMEASURED_SPREAD
    found *= EXPERT_SPREAD if step.batch.forward.expert_layers else 1.0
    return float(found * WAITING_SPREAD ** waiting_share(step))


def waiting_share(step: TrainingStep) -> float:
    """Return the share of a step in which the card waits for launches or for other cards."""
    passes = step.passes
    waiting = step.micro_batches * (passes.seconds - passes.device_seconds) + sum(
        [one.exposed_seconds for one in step.transfers]
    )
    return waiting / step.busy_seconds
