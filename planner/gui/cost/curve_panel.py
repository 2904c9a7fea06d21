"""The panel of the cumulative costs: plot, read-out and table."""

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from planner.cost.result import CostPoint
from planner.gui.cost.curve_data import CostCurve
from planner.gui.plot.legend import Legend, LegendEntry
from planner.gui.plot.panel import DataPanel
from planner.gui.theme import Theme
from planner.present import format as fmt
from planner.present.columns import Column, number_column
from planner.present.cost.summary import years_phrase

if TYPE_CHECKING:
    from planner.gui.cost.curve_plot import CostPlot


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
        about="GPU-hours used until then, of all cards together",
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
        super().__init__(theme, "Cumulative cost, present value", "curve", "cost-curve")
        self.legend = Legend(theme)
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

    def _make_chart(self) -> "CostPlot":
        from planner.gui.cost.curve_plot import CostPlot

        plot = CostPlot(self._theme)
        self.legend.toggled.connect(plot.hide_sides)
        return plot

    def _fill_table(self) -> None:
        if self.data is not None:
            columns = _COLUMNS_WITH_BOUNDS if self.data.is_drawn else _COLUMNS
            self._show_in_table(self.data.points, columns).setAccessibleName("Costs over time")

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
