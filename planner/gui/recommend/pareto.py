"""Time against cost of every option, on logarithmic axes: the plot, and its panel with a legend."""

from math import log10
from typing import ClassVar, Final

import numpy as np
from PySide6.QtCore import QPointF, Qt, Signal, Slot
from PySide6.QtWidgets import QWidget

from planner.gui.plot.chart import Chart, ItemStyle, pg
from planner.gui.plot.labels import Floats, NameLayer, PointName
from planner.gui.plot.legend import Legend, LegendEntry
from planner.gui.plot.ticks import Ticks, log_ticks, money_label
from planner.gui.theme import Theme
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import in_column, in_row
from planner.plan.recommend.option import Acquisition, sure_options
from planner.present.cost.recommendation import OptionRow

_ROLES: Final[dict[Acquisition, str]] = {"rent": "series-1", "own": "series-2"}
_SYMBOLS: Final[dict[Acquisition, str]] = {"rent": "o", "own": "s"}
_POINT_ALPHA: Final = 150
_POINT_SIZE: Final = 6
_AWARD_SIZE: Final = 12
_MARGIN_FRACTION: Final = 0.06
_LOWEST_USD: Final = 1e-6


class ParetoPlot(Chart):
    """Plot with a point for each option; a line joins the options that no other option beats in both time and cost."""

    PIXELS_PER_TICK: ClassVar = (44, 30)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Time vs. cost; the table shows the same figures")
        self._all: tuple[OptionRow, ...] = ()
        self.rows: tuple[OptionRow, ...] = ()
        self._xs = self._ys = np.zeros(0)
        self._hidden: frozenset[Acquisition] = frozenset()
        self._front = self._add_curve(ItemStyle("accent", 1.5, Qt.PenStyle.DashLine))
        self._points = {
            having: self._add_item(
                pg.ScatterPlotItem(size=_POINT_SIZE, symbol=symbol), ItemStyle(fill=_ROLES[having], alpha=_POINT_ALPHA)
            )
            for having, symbol in _SYMBOLS.items()
        }
        self._named = self._add_item(
            pg.ScatterPlotItem(size=_AWARD_SIZE, symbol="d"), ItemStyle("surface", 1, fill="accent")
        )
        self.names = NameLayer(self._item.getViewBox(), theme)
        # The width of the axes, and so the room for names, is known only after a resize.
        self._item.getViewBox().sigResized.connect(self._place_names)

    def set_data(self, data: tuple[OptionRow, ...]) -> None:
        """Show the options in `data` that may be recommended: others would seem to beat them."""
        sure = {option.key for option in sure_options([row.option for row in data])}
        self._all = tuple(row for row in data if row.id in sure)
        per_token = bool(data) and data[0].period != "run"
        self._set_axis_titles(
            "Seconds per token" if per_token else "Hours", f"USD per {data[0].period if data else 'run'}"
        )
        self._draw()

    @Slot(object)
    def hide_acquisitions(self, hidden: frozenset[Acquisition]) -> None:
        """Hide rented or owned options; `hidden` holds the hidden kinds of acquisition."""
        self._hidden = hidden
        self._draw()

    def log_position(self, row: OptionRow) -> tuple[float, float]:
        """Return an option's position on the axes, as base-10 logarithms of time and cost in USD."""
        return log10(row.option.slowness), log10(max(row.option.usd, _LOWEST_USD))

    def _draw(self) -> None:
        self.rows = tuple(row for row in self._all if row.option.having not in self._hidden)
        self._xs, self._ys = self._coordinates(self.rows)
        for having, item in self._points.items():
            item.setData(*self._coordinates([row for row in self.rows if row.option.having == having]))
        self._front.setData(*self._coordinates(sorted((r for r in self.rows if r.is_unbeaten), key=self.log_position)))
        self._named.setData(*self._coordinates([row for row in self.rows if row.awards]))
        if self.rows:
            self._set_axis_ranges(_padded_range(self._xs), _padded_range(self._ys))
        self._place_ticks()
        self._place_names()

    def _coordinates(self, rows: "list[OptionRow] | tuple[OptionRow, ...]") -> tuple[Floats, Floats]:
        positions = np.array([self.log_position(row) for row in rows]).reshape(-1, 2)
        return positions[:, 0], positions[:, 1]

    def _axis_ticks(self, x_tick_count: int, y_tick_count: int) -> tuple[Ticks, Ticks] | None:
        if not self.rows:
            return None
        (left, right), (bottom, top) = self._item.getViewBox().viewRange()
        return log_ticks(left, right, x_tick_count), log_ticks(bottom, top, y_tick_count, money_label)

    @Slot()
    def _place_names(self) -> None:
        awarded = [row for row in self.rows if row.awards]
        labels = [PointName(", ".join(row.awards), *self.log_position(row), _AWARD_SIZE / 2) for row in awarded]
        self.names.place(labels, self._xs, self._ys, _POINT_SIZE / 2, needed=len(labels))

    def _point_at(self, position: QPointF) -> OptionRow | None:
        nearest = self._nearest_index(self._xs, self._ys, position)
        return None if nearest is None else self.rows[nearest]

    def _apply_theme(self) -> None:
        super()._apply_theme()
        self.names.update()


def _padded_range(values: Floats) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    margin = _MARGIN_FRACTION * max(high - low, 0.5)
    return low - margin, high + margin


_LEGEND: Final[dict[Acquisition, LegendEntry]] = {
    "rent": LegendEntry("rent", "re&nted", _ROLES["rent"], is_round=True),
    "own": LegendEntry("own", "&owned", _ROLES["own"]),
}
_SMALLEST_WIDTH: Final = 380


class ParetoPanel(QWidget):
    """Plot of time against cost with its legend; `hovered` carries the hovered row or None, `chosen` a clicked row."""

    hovered = Signal(object)
    chosen = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.plot: ParetoPlot | None = None
        self.legend = Legend(theme)
        self.setMinimumWidth(_SMALLEST_WIDTH)
        title = make_label("Time vs. cost", font=theme.font(bold=True))
        about = make_label(
            "Dashed: no other option is both faster and cheaper than these.", "muted", theme.font("small")
        )
        heading = in_row(title, (self.legend, 1), spacing=theme.spacing.large)
        self._column = in_column(heading, about, owner=self, spacing=theme.spacing.tiny)

    def set_rows(self, rows: tuple[OptionRow, ...]) -> None:
        """Show the options in `rows`; the first call imports the plotting library."""
        if self.plot is None:
            self.plot = ParetoPlot(self._theme)
            self.plot.hovered.connect(self.hovered)
            self.plot.chosen.connect(self.chosen)
            self.legend.toggled.connect(self.plot.hide_acquisitions)
            self._column.addWidget(self.plot, 1)
        self.legend.set_entries(
            tuple(entry for having, entry in _LEGEND.items() if any(row.option.having == having for row in rows))
        )
        self.plot.set_data(rows)
