"""Data of the plot of cumulative costs."""

from dataclasses import dataclass
from typing import Final

from planner.cost.rent_or_buy.uncertainty import Simulation
from planner.cost.result import BreakEven, CostPoint

_ROOM: Final = 1.06


@dataclass(frozen=True, slots=True)
class CostBand:
    """Lower and upper bounds of a cumulative cost in USD, at ascending times in years."""

    years: tuple[float, ...]
    low_usd: tuple[float, ...]
    high_usd: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class CostCurve:
    """Cumulative costs of renting and owning at ascending times, each with a band from its lower to its upper bound."""

    points: tuple[CostPoint, ...]
    break_even: BreakEven | None
    rent_band: CostBand
    own_band: CostBand
    is_owned: bool = False
    """Whether the cards are owned already, so that they are not sold."""

    @property
    def horizon_years(self) -> float:
        """Return the time of the curve's last point, in years."""
        return self.points[-1].years

    @property
    def highest_usd(self) -> float:
        """Return the cost in USD at the upper end of the y axis."""
        return _ROOM * max(*self.rent_band.high_usd, *self.own_band.high_usd, 1.0)

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
        """Return the header and a row for each point."""
        names = (
            "years",
            "gpu_hours",
            "rent_usd",
            "own_usd",
            "rent_low_usd",
            "rent_high_usd",
            "own_low_usd",
            "own_high_usd",
        )
        return (names, *(tuple(f"{getattr(point, name):.4f}" for name in names) for point in self.points))


def curve_with_bands(
    points: tuple[CostPoint, ...], break_even: BreakEven | None, *, is_owned: bool = False
) -> CostCurve:
    """Return the cost curve of `points`, with bands from the points' low to high costs."""
    years = tuple(point.years for point in points)
    rent = CostBand(years, tuple(p.rent_low_usd for p in points), tuple(p.rent_high_usd for p in points))
    own = CostBand(years, tuple(p.own_low_usd for p in points), tuple(p.own_high_usd for p in points))
    return CostCurve(points, break_even, rent, own, is_owned)


def curve_with_draws(curve: CostCurve, simulation: Simulation) -> CostCurve:
    """Return `curve` with bands from the 10th to the 90th percentile of the Monte Carlo draws."""
    drawn = simulation.band
    years = tuple(point.years for point in drawn)
    rent = CostBand(years, tuple(p.rent_usd.p10 for p in drawn), tuple(p.rent_usd.p90 for p in drawn))
    own = CostBand(years, tuple(p.own_usd.p10 for p in drawn), tuple(p.own_usd.p90 for p in drawn))
    return CostCurve(curve.points, curve.break_even, rent, own, curve.is_owned)
