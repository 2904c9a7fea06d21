"""How far measured steps lie from the estimate: what the interval is made of."""

from typing import Final

from planner.hardware.gpu import Gpu
from planner.performance.efficiency import SIZES, MatrixFormat, is_measured, matrix_family
from planner.performance.training.step import Step

KNOWN: Final = 1.22
"""Four of five measured steps of dense networks on a measured family lie within this factor, their source left out of
the fit; as many cards as there are make no difference."""
UNKNOWN: Final = 1.5
"""The same of a family of which nothing was measured: nine of ten rows of families left out lie within a third, and
other fits to the same speeds leave 1.6 for unknown cards."""
EXPERTS: Final = 1.3
"""By how much more networks with routed experts spread: within 1.59 of four of five."""
WAITING: Final = 2.0
"""By how much more a step spreads that is all waiting, for the host or for other cards: 1.72 where half of it is."""


def spread_of(step: Step, gpu: Gpu, narrow: MatrixFormat) -> float:
    """Return the factor by which a step may be longer or shorter, one case in ten beyond each end.

    **Formula**: the factor of the family, times one for routed experts, times one that grows with the share of the step
    in which the card waits.

    **Source**: benchmarks/throughput_classes.py --leave-one-out; benchmarks/throughput_accuracy.py prints how many
    measured rows lie within.
    """
    found = KNOWN if is_measured(matrix_family(gpu), SIZES[narrow]) else UNKNOWN
    found *= EXPERTS if step.batch.forward.expert_layers else 1.0
    return float(found * WAITING ** waiting_share(step))


def waiting_share(step: Step) -> float:
    """Return the share of a step in which the card waits for launches or for others."""
    passes = step.passes
    waiting = step.micro_batches * (passes.seconds - passes.device) + sum([one.exposed for one in step.exchanges])
    return waiting / step.busy
