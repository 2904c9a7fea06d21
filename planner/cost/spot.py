"""Interruptions: how much work they lose, and how often it is best to write a checkpoint."""

import math
from typing import Final

from planner.base import Spec
from planner.cost.constants import Constant
from planner.cost.figure import Figure
from planner.errors import SpecError

_HOURS_PER_MONTH: Final = 730.5
_KNOWN: Final = (("h100", "H100 p5"), ("a100", "A100 p4d"), ("l4", "L4"))
"""Which cards the published bands are of; `l4` is the whole id, the others how ids begin."""


class SpotWaste(Spec):
    """What interruptions add to the hours of a run, as shares of its work."""

    interval_hours: float | None
    checkpoint_fraction: float
    lost_fraction: float
    restart_fraction: float

    @property
    def waste_fraction(self) -> float:
        """Return all of it."""
        return self.checkpoint_fraction + self.lost_fraction + self.restart_fraction


def best_interval_hours(checkpoint_hours: float, mean_hours: float) -> float:
    """Return how many hours of work to put between two checkpoints.

    **Formula** τ = √(2 · δ · M)
    **Source** Young (1974), Daly (2006), first order
    **Assumes** that a checkpoint takes far less than the time between interruptions.
    """
    return math.sqrt(2 * checkpoint_hours * mean_hours)


def spot_waste(
    checkpoint_hours: float, restart_hours: float, mean_hours: float, interval_hours: float | None = None
) -> SpotWaste:
    """Return what interruptions cost that come every `mean_hours` on average.

    **Formula** δ/τ + (τ/2 + R)/M
    Without `interval_hours` the best one is taken; checkpoints that take no time may be written always.

    Raises:
        SpecError: If interruptions come without pause.
    """
    if mean_hours <= 0:
        raise SpecError("rent.mean_hours_between_interruptions", f"must be more than 0, not {mean_hours:g}")
    interval = interval_hours or best_interval_hours(checkpoint_hours, mean_hours)
    return SpotWaste(
        interval_hours=interval or None,
        checkpoint_fraction=checkpoint_hours / interval if interval else 0.0,
        lost_fraction=interval / 2 / mean_hours,
        restart_fraction=restart_hours / mean_hours,
    )


def mean_hours_between(share_per_month: float) -> float:
    """Return the mean time between interruptions where this share of machines is interrupted in a month.

    **Formula** M = 730.5 / −ln(1 − s)
    **Assumes** interruptions that come at random, equally likely at any time.
    """
    return _HOURS_PER_MONTH / -math.log1p(-share_per_month)


def interruption_share(gpu_id: str, constants: tuple[Constant, ...]) -> Figure:
    """Return the share of spot machines with this card that are interrupted in a month.

    **Source** AWS Spot Instance Advisor, 1 May 2025; cards without a band take the range of all of them.
    """
    bands = {constant.name: constant for constant in constants if constant.kind == "spot_interruption"}
    name = next((band for start, band in _KNOWN if gpu_id == start or gpu_id.startswith(f"{start}-")), None)
    low = bands[f"{name or 'L4'} low"]
    high = bands[f"{name or 'H100 p5'} high"]
    source = low.source if name else f"{low.source}: no band of this card, the range of all bands"
    # A band from zero has a middle, but no logarithm: the figure may not reach zero.
    middle = (low.value + high.value) / 2
    return Figure(
        value=middle,
        low=max(low.value, middle / 10),
        high=high.value,
        source=source,
        date=low.date,
        certainty="quoted" if name else "assumed",
    )
