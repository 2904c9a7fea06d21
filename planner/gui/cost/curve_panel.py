"""The curve of costs: what it shows, with its read-out, its table, copy and save."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from planner.cost.montecarlo import Simulation
from planner.cost.result import BreakEven, CurvePoint
from planner.gui.plot.panel import DataPanel
from planner.gui.theme import Theme
from planner.present import format as fmt
from planner.present.columns import Column, numbers

if TYPE_CHECKING:
    from planner.gui.cost.curve_plot import CostPlot

_ROOM: Final = 1.06
_COLUMNS: Final[tuple[Column[CurvePoint], ...]] = (
    numbers("years", "Years", lambda point: point.years, width=8),
    numbers("hours", "GPU-hours", lambda point: point.gpu_hours, width=12),
    numbers("rent", "Renting", lambda point: point.rent_usd, show=fmt.money),
    numbers("rent_low", "at least", lambda point: point.rent_low_usd, show=fmt.money),
    numbers("rent_high", "at most", lambda point: point.rent_high_usd, show=fmt.money),
    numbers("own", "Owning", lambda point: point.own_usd, show=fmt.money),
    numbers("own_low", "at least", lambda point: point.own_low_usd, show=fmt.money),
    numbers("own_high", "at most", lambda point: point.own_high_usd, show=fmt.money),
)


@dataclass(frozen=True, slots=True)
class CostBand:
    """What one draw in ten lies below, and one above, at ascending times."""

    years: tuple[float, ...]
    low_usd: tuple[float, ...]
    high_usd: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class CostCurve:
    """Spent by ascending times; the bands are of the curve itself, or of the draws once they are there."""

    points: tuple[CurvePoint, ...]
    break_even: BreakEven | None
    rent_band: CostBand
    own_band: CostBand

    @property
    def horizon_years(self) -> float:
        """Return the last time."""
        return self.points[-1].years

    @property
    def highest_usd(self) -> float:
        """Return the upper end of the axis, with some room."""
        return _ROOM * max(*self.rent_band.high_usd, *self.own_band.high_usd, 1.0)

    @property
    def crossing(self) -> tuple[float, float] | None:
        """Return where both have cost the same: years and USD; none where that is not within the horizon."""
        years = None if self.break_even is None else self.break_even.years
        if years is None or not 0 < years <= self.horizon_years:
            return None
        after = next(point for point in self.points if point.years >= years)
        before = self.points[max(0, self.points.index(after) - 1)]
        span = after.years - before.years
        share = (years - before.years) / span if span else 0.0
        return years, before.rent_usd + share * (after.rent_usd - before.rent_usd)

    def nearest(self, years: float) -> CurvePoint:
        """Return the point nearest to a time."""
        return min(self.points, key=lambda point: abs(point.years - years))

    def csv_rows(self) -> tuple[tuple[str, ...], ...]:
        """Return a header and a row for each point."""
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


def cost_curve(points: tuple[CurvePoint, ...], found: BreakEven | None) -> CostCurve:
    """Return the curve with its own bands."""
    years = tuple(point.years for point in points)
    rent = CostBand(years, tuple(p.rent_low_usd for p in points), tuple(p.rent_high_usd for p in points))
    own = CostBand(years, tuple(p.own_low_usd for p in points), tuple(p.own_high_usd for p in points))
    return CostCurve(points, found, rent, own)


def with_draws(curve: CostCurve, simulation: Simulation) -> CostCurve:
    """Return the curve with the bands of the draws."""
    drawn = simulation.band
    years = tuple(point.years for point in drawn)
    rent = CostBand(years, tuple(p.rent_usd.p10 for p in drawn), tuple(p.rent_usd.p90 for p in drawn))
    own = CostBand(years, tuple(p.own_usd.p10 for p in drawn), tuple(p.own_usd.p90 for p in drawn))
    return CostCurve(curve.points, curve.break_even, rent, own)


class CostCurvePanel(DataPanel[CostCurve]):
    """What was spent by when, in today's money."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Spent by then, in today's money", "curve", "cost-curve")

    def set_data(self, data: CostCurve) -> None:
        """Show another curve; the first one waits for `draw`."""
        if self._chart is None:
            self.data = data
        else:
            super().set_data(data)

    def draw(self) -> None:
        """Draw the first curve, which imports the plotting library: half a second that the answer must not wait for."""
        if self._chart is None and self.data is not None:
            super().set_data(self.data)

    def _make_chart(self) -> "CostPlot":
        from planner.gui.cost.curve_plot import CostPlot

        return CostPlot(self._theme)

    def _fill_table(self) -> None:
        if self.data is not None:
            self._show_in_table(self.data.points, _COLUMNS).setAccessibleName("Costs over time")

    def _row_id(self, point: CurvePoint) -> str:
        return f"{point.years:.4f}"

    def _words_of(self, data: CostCurve, point: CurvePoint | None) -> str:
        said = point or data.points[-1]
        return (
            f"after {fmt.plain(said.years)} years, {fmt.significant(said.gpu_hours)} GPU-hours: "
            f"renting {fmt.money(said.rent_usd)}, owning {fmt.money(said.own_usd)}"
        )
