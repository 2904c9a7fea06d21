"""How far measured steps lie from the estimate: what the interval is made of."""

from typing import Final

from planner.hardware.gpu import Gpu
from planner.performance.efficiency import SIZES, MatrixFormat, family_of, is_measured
from planner.performance.training.step import Step

KNOWN: Final = 1.2
"""Four of five measured steps lie within this factor: a dense network on up to 16 cards of a measured family."""
UNKNOWN: Final = 1.6
"""The same for a family of which nothing was measured."""
MANY_CARDS: Final = 1.25
EXPERTS: Final = 1.35
WAITING: Final = 2.0
"""By how much more a step spreads that is all waiting, for the host or for other cards over PCIe."""
_MANY: Final = 16


def spread_of(step: Step, gpu: Gpu, count: int, narrow: MatrixFormat) -> float:
    """Return the factor by which a step may be longer or shorter, one case in ten beyond each end.

    **Formula**: the factor of the family, times one for each of many cards and routed experts, times one that grows
    with the share of the step in which the card waits.

    **Source**: benchmarks/throughput_accuracy.py prints how many measured rows lie within.
    """
    found = KNOWN if is_measured(family_of(gpu), SIZES[narrow]) else UNKNOWN
    found *= MANY_CARDS if count > _MANY else 1.0
    found *= EXPERTS if step.batch.forward.expert_layers else 1.0
    return float(found * WAITING ** waiting_share(step))


def waiting_share(step: Step) -> float:
    """Return the share of a step in which the card waits for launches or for others."""
    waiting = step.micro_batches * step.passes.host + sum([one.exposed for one in step.exchanges])
    return waiting / step.busy
