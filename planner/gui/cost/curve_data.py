"""Data of the plot of cumulative costs."""

from dataclasses import dataclass, replace
from typing import Final

from planner.cost.rent_or_buy.uncertainty import BandPoint, Simulation
from planner.cost.result import BreakEven, CostPoint

_ROOM: Final = 1.06
_MIDDLES: Final = ("years", "gpu_hours", "rent_usd", "own_usd")
_BOUNDS: Final = ("rent_low_usd", "rent_high_usd", "own_low_usd", "own_high_usd")


@dataclass(frozen=True, slots=True)
class CostCurve:
    """Cumulative costs of renting and owning at ascending times.

    The low and the high costs of the points are a band only once all inputs have been drawn: those of the estimate
    vary nothing but the hours of use and the resale value.
    """

    points: tuple[CostPoint, ...]
    break_even: BreakEven | None
    is_owned: bool = False
    """Whether the cards are owned already, so that they are not sold."""
    is_drawn: bool = False
    """Whether the points' low and high costs are percentiles of Monte Carlo draws."""

    @property
    def horizon_years(self) -> float:
        """Return the time of the curve's last point, in years."""
        return self.points[-1].years

    @property
    def highest_usd(self) -> float:
        """Return the cost in USD at the upper end of the y axis."""
        return _ROOM * max(1.0, *(max(point.rent_high_usd, point.own_high_usd) for point in self.points))

    @property
    def crossing(self) -> tuple[float, float] | None:
        """Return the break-even point as years and USD, or None if the curves do not cross within the horizon."""
        years = None if self.break_even is None else self.break_even.years
        if years is None or not 0 < years <= self.horizon_years:
            return None
        after = next(point for point in self.points if point.years >= years)
        before = self.points[max(0, self.points.index(after) - 1)]
        span = after.years - before.years
        share = (years - before.years) / span if span else 0.0
        return years, before.rent_usd + share * (after.rent_usd - before.rent_usd)

    def nearest(self, years: float) -> CostPoint:
        """Return the curve's point whose time is nearest to `years`."""
        return min(self.points, key=lambda point: abs(point.years - years))

    def csv_rows(self) -> tuple[tuple[str, ...], ...]:
        """Return the header and a row for each point, with the bands if there are any."""
        names = (*_MIDDLES, *(_BOUNDS if self.is_drawn else ()))
        return (names, *(tuple(f"{getattr(point, name):.4f}" for name in names) for point in self.points))


def curve_with_draws(curve: CostCurve, simulation: Simulation) -> CostCurve:
    """Return `curve` with bands from the 10th to the 90th percentile of the Monte Carlo draws."""
    return replace(curve, points=tuple(_with_bounds(point, simulation.band) for point in curve.points), is_drawn=True)


def _with_bounds(point: CostPoint, band: tuple[BandPoint, ...]) -> CostPoint:
    """Return a point with the percentiles at its time, between those of the two times around it."""
    after = next((at for at in range(1, len(band)) if band[at].years >= point.years), len(band) - 1)
    low, high = band[after - 1], band[after]
    span = high.years - low.years
    share = (point.years - low.years) / span if span else 0.0

    def between(first: float, second: float) -> float:
        return first + share * (second - first)

    return point.evolve(
        rent_low_usd=between(low.rent_usd.p10, high.rent_usd.p10),
        rent_high_usd=between(low.rent_usd.p90, high.rent_usd.p90),
        own_low_usd=between(low.own_usd.p10, high.own_usd.p10),
        own_high_usd=between(low.own_usd.p90, high.own_usd.p90),
    )
