"""The cumulative costs of renting and owning over time: data, plot, and panel with its table."""

from dataclasses import dataclass, replace
from operator import attrgetter
from typing import ClassVar, Final

from PySide6.QtCore import QPointF, Qt

from planner.cost.rent_or_buy.uncertainty import BandPoint, Simulation
from planner.cost.result import BreakEven, CostPoint
from planner.cost.terms import Side
from planner.gui.plot.chart import DataChart, Item, ItemStyle, pg
from planner.gui.plot.legend import LegendEntry
from planner.gui.plot.panel import DataPanel
from planner.gui.plot.ticks import Ticks, money_label, round_ticks
from planner.gui.theme import Theme
from planner.present import format as fmt
from planner.present.columns import Column, number_column
from planner.present.cost.summary import time_axis, years_phrase

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


_BAND_ALPHA = 40


class CostPlot(DataChart[CostCurve]):
    """Plot of the cumulative costs of renting and owning, with uncertainty bands and the break-even point."""

    PIXELS_PER_TICK: ClassVar = (90, 36)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Costs over time; the table shows the same figures")
        self._rent_edges = self._add_band(ItemStyle(fill="accent", alpha=_BAND_ALPHA))
        self._own_edges = self._add_band(ItemStyle(fill="text", alpha=_BAND_ALPHA))
        self._rent = self._add_curve(ItemStyle("accent", 2, Qt.PenStyle.DashLine))
        self._own = self._add_curve(ItemStyle("text", 2))
        self._break_even = self._add_item(pg.ScatterPlotItem(size=10), ItemStyle("text", 1.5, fill="surface"))
        self._label = self._add_item(pg.TextItem(anchor=(0, 1)), ItemStyle("text"))
        self._apply_theme()

    def _draw(self, data: CostCurve) -> None:
        sides: tuple[tuple[Side, Item, tuple[Item, Item], str], ...] = (
            ("rent", self._rent, self._rent_edges, "rent"),
            ("buy", self._own, self._own_edges, "own"),
        )
        for side, curve, edges, name in sides:
            shown = () if side in self._hidden else data.points
            _draw_points(curve, shown, f"{name}_usd")
            for edge, bound in zip(edges, ("low", "high"), strict=True):
                _draw_points(edge, shown if data.is_drawn else (), f"{name}_{bound}_usd")
        self._set_axis_titles(bottom=fmt.capitalized(time_axis(data.horizon_years)[0]))
        self._set_axis_ranges((0, data.horizon_years), (0, data.highest_usd), padding=0.02)
        self._place_break_even(data)

    def _place_break_even(self, data: CostCurve) -> None:
        crossing = data.crossing
        self._break_even.setVisible(crossing is not None)
        self._label.setVisible(crossing is not None)
        if crossing is not None:
            years, usd = crossing
            self._break_even.setData([years], [usd])
            self._label.setAnchor((1.05, 1.3) if years > data.horizon_years / 2 else (-0.05, 2.4))
            self._label.setText(f"break-even after {years_phrase(years)}")
            self._label.setPos(years, usd)

    def _ticks_of(self, data: CostCurve, x_tick_count: int, y_tick_count: int) -> tuple[Ticks, Ticks]:
        _, per_year = time_axis(data.horizon_years)
        times = round_ticks(0.0, data.horizon_years * per_year, max(2, x_tick_count))
        return [(time / per_year, text) for time, text in times], round_ticks(
            0.0, data.highest_usd, y_tick_count, money_label
        )

    def _nearest_point(self, data: CostCurve, place: QPointF) -> CostPoint:
        return data.nearest(place.x())

    def _x_of(self, _data: CostCurve, point: CostPoint) -> float:
        return point.years


def _draw_points(line: Item, points: tuple[CostPoint, ...], name: str) -> None:
    """Draw the cost `name` of the points over time."""
    line.setData([point.years for point in points], [getattr(point, name) for point in points])


def _money_column(key: str, title: str, about: str) -> Column[CostPoint]:
    return number_column(key, title, attrgetter(f"{key}_usd"), show=fmt.money, width=9, about=about)


def _bound_columns(side: str, title: str) -> tuple[Column[CostPoint], ...]:
    """Return the columns of what renting or owning costs less and more than in one of ten cases."""
    return (
        _money_column(f"{side}_low", "at least", f"{title} costs less than this in one of ten cases"),
        _money_column(f"{side}_high", "at most", f"{title} costs more than this in one of ten cases"),
    )


_TIMES: Final[tuple[Column[CostPoint], ...]] = (
    number_column(
        "years", "After", lambda point: point.years, show=years_phrase, width=10, about="Time since the start"
    ),
    number_column(
        "hours",
        "GPU-hours",
        lambda point: point.gpu_hours,
        width=10,
        about="GPU-hours used until then, of all GPUs together",
    ),
)
_RENTING: Final = _money_column("rent", "Renting", "Total cost of renting until then, present value")
_OWNING: Final = _money_column("own", "Owning", "Total cost of owning until then, resale value deducted")
_COLUMNS: Final = (*_TIMES, _RENTING, _OWNING)
_COLUMNS_WITH_BOUNDS: Final = (
    *(*_TIMES, _RENTING, *_bound_columns("rent", "Renting")),
    *(_OWNING, *_bound_columns("own", "Owning")),
)


class CostCurvePanel(DataPanel[CostCurve]):
    """Panel with the cumulative costs of renting and owning over time, as present value."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Cumulative cost, present value", "curve", "cost-curve", CostPlot)
        self._column.insertWidget(1, self.legend)

    def set_data(self, data: CostCurve) -> None:
        """Replace the curve; the first curve is stored, and only drawn by `draw`."""
        self.legend.set_entries(_legend_entries(data))
        if self._chart is None:
            self.data = data
        else:
            super().set_data(data)

    def draw(self) -> None:
        """Draw the first curve, later than the answer: importing the plotting library takes half a second."""
        if self._chart is None and self.data is not None:
            super().set_data(self.data)

    def _show_table_of(self, data: CostCurve) -> None:
        self._show_in_table(data.points, _COLUMNS_WITH_BOUNDS if data.is_drawn else _COLUMNS, "Costs over time")

    def _row_id(self, point: CostPoint) -> str:
        return f"{point.years:.4f}"

    def _read_out_text(self, data: CostCurve, point: CostPoint | None) -> str:
        shown = point or data.points[-1]
        return (
            f"after {years_phrase(shown.years)}, {fmt.significant(shown.gpu_hours)} GPU-hours: "
            f"renting {fmt.money(shown.rent_usd)}, owning {fmt.money(shown.own_usd)}"
        )


def _legend_entries(data: CostCurve) -> tuple[LegendEntry, ...]:
    owning = "Your own" if data.is_owned else "Buying, net of resale at that time"
    return LegendEntry("rent", "Renting", "accent"), LegendEntry("buy", owning, "text")
