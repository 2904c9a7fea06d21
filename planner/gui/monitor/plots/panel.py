"""Panel of a plot: heading, legend, read-out of values, table and menu."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QMenu

from planner.gui.monitor.plots.curves import (
    Curve,
    LimitLine,
    Owner,
    SeriesKey,
    curves_value_range,
    possible_curves,
    series_curve,
)
from planner.gui.monitor.plots.plot_list import AxisRange, PlotSpec, metric_range, value_text
from planner.gui.monitor.plots.time_view import TimeSpanView
from planner.gui.plot.legend import Legend, LegendEntry
from planner.gui.plot.panel import PlotPanel, Rows
from planner.gui.plot.ticks import clock_text
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import IconButton
from planner.monitor.history import HOST, History
from planner.monitor.readings.metrics import Unit
from planner.present.columns import Column

if TYPE_CHECKING:
    from planner.gui.monitor.plots.metric_plot import MetricPlot

_LEAST_HEIGHT_LINES: Final = 6
_EXPORTED_COLUMNS: Final = 2000
_HEADER: Final = ("clock", "seconds", "curve", "quantity", "lowest", "highest")
# The values of more curves are read out as a range.
_MOST_READ_OUT: Final = 2
_DASH: Final = " – "


class ReadingRow(NamedTuple):
    """Lowest and highest value of each curve from one time to the next; `ends` is by the index of the curve."""

    time: float
    clock: str
    ends: dict[int, tuple[float, float]]


class MetricPanel(PlotPanel):
    """Panel of the plot `spec`; `moved` (−1 or +1) and `hidden` are user requests to move or hide the plot.

    `clicked` and `double_clicked` carry the time at the pointer. `lines` are the values and titles of horizontal
    lines, by owner.
    """

    moved = Signal(int)
    hidden = Signal()
    clicked = Signal(float)
    double_clicked = Signal(float)

    def __init__(self, theme: Theme, spec: PlotSpec, history: History, view: TimeSpanView) -> None:
        super().__init__(theme, spec.title, "plot", spec.key)
        self.spec = spec
        self.history, self._view = history, view
        self._plot: MetricPlot | None = None
        self._owners: tuple[Owner, ...] = ()
        self._shown: list[tuple[SeriesKey, str, int]] = []
        self.lines: dict[str, tuple[float, str]] = {}
        self._columns: tuple[Column[ReadingRow], ...] = ()
        self.curves: list[Curve] = []
        self.legend = Legend(theme)
        self.legend.toggled.connect(self.refresh)
        self._column.insertWidget(1, self.legend)
        self.legend.setVisible(spec.is_host and len(spec.metrics) > 1)
        self._add_menu()
        self._pages.setMinimumHeight(QFontMetrics(theme.font()).height() * _LEAST_HEIGHT_LINES)
        view.cursor_moved.connect(self._update_read_out)
        self.export.aboutToShow.connect(self._draw)

    @property
    def is_in_sight(self) -> bool:
        """Return whether more than the heading is visible."""
        shown = self._pages.currentWidget()
        if self._plot is not None and shown is self._plot:
            return self._plot.is_in_sight
        return shown is self.table or (shown is not None and not shown.visibleRegion().isEmpty())

    @property
    def needs_plot(self) -> bool:
        """Return whether the plot is in sight and still has to be created."""
        return self._plot is None and self.is_in_sight

    @property
    def is_drawn(self) -> bool:
        """Return whether the plot has been drawn."""
        return self._chart is not None

    @property
    def columns(self) -> int:
        """Return the number of columns to which the curves are reduced, 0 before there is a plot."""
        return 0 if self._plot is None else self._plot.columns

    def set_owners(self, owners: tuple[Owner, ...]) -> None:
        """Set the cards whose curves the next `refresh` draws."""
        self._owners = owners
        if self.spec.is_host:
            entries = [LegendEntry(key, label, number) for key, label, number in possible_curves(self.spec, ())]
            self.legend.set_entries(tuple(entries))

    @Slot()
    def refresh(self) -> None:
        """Draw the displayed time span; while only the heading is visible, show the values there."""
        self._shown = [
            curve
            for curve in possible_curves(self.spec, self._owners)
            if curve[0] not in self.legend.hidden and len(self.history.series(*curve[0]))
        ]
        if self.is_in_sight:
            self._draw()
        self._update_read_out(self._view.cursor)

    @Slot()
    def _draw(self) -> None:
        plot = self._plot or self.create_plot()
        if not self.is_drawn:
            self._set_chart(plot)
        span = AxisRange(self._view.start, self._view.end)
        self.curves = [series_curve(self.history, *key, span, plot.columns) for key in self._shown]
        limits = self._limit_curves(span, plot.columns)
        lines = self._limit_lines()
        values = curves_value_range([*self.curves, *limits])
        plot.set_limit_lines(lines)
        plot.set_marks(self.history.marks)
        ends = metric_range(self.spec.unit, values, tuple(line.value for line in lines))
        plot.draw(self.curves, limits, ends, self.history.wall_of)
        self._show_page()

    def csv_rows(self) -> Rows:
        """Return the plotted readings as CSV rows with a header; many readings are reduced to extremes."""
        rows = [_HEADER]
        span = AxisRange(self._view.start, self._view.end)
        for curve in (series_curve(self.history, *key, span, _EXPORTED_COLUMNS) for key in self._shown):
            for time, low, high in zip(*(column.tolist() for column in curve.columns), strict=True):
                clock = datetime.fromtimestamp(self.history.wall_of(time)).isoformat(timespec="milliseconds")
                rows.append((clock, f"{time:.3f}", curve.label, curve.key[1], f"{low:g}", f"{high:g}"))
        return tuple(rows)

    def _limit_curves(self, span: AxisRange, columns: int) -> list[Curve]:
        if self.spec.limit is None:
            return []
        keys = [((owner.uuid, self.spec.limit), owner.label, owner.stroke) for owner in self._owners]
        return [series_curve(self.history, *key, span, columns) for key in keys if len(self.history.series(*key[0]))]

    def _limit_lines(self) -> list[LimitLine]:
        strokes = {owner.uuid: owner.stroke for owner in self._owners}
        lines = [LimitLine(value, title) for value, title in self._fixed_limits().items()]
        own = ((owner, *line) for owner, line in self.lines.items() if owner in strokes or self.spec.is_host)
        return [*lines, *(LimitLine(value, title, strokes.get(owner)) for owner, value, title in own)]

    def _fixed_limits(self) -> dict[float, str]:
        """Return the titles of the shown cards' fixed limits, by limit value."""
        shown = {owner.uuid for owner in self._owners}
        limits: dict[float, str] = {}
        for device in self.history.inventory.devices:
            for name, title in self.spec.facts:
                value = device.fact(name)
                if device.uuid in shown and value is not None:
                    limits[value] = f"{title} {value_text(self.spec.unit, value)}"
        return limits

    def create_plot(self) -> "MetricPlot":
        """Create and return the plot, which is shown once it is drawn."""
        from planner.gui.monitor.plots.metric_plot import MetricPlot

        self._plot = plot = MetricPlot(self._theme, self.spec.title, self.spec.unit, self._view)
        plot.gestures.clicked.connect(self.clicked)
        plot.gestures.double_clicked.connect(self.double_clicked)
        return plot

    def _fill_table(self) -> None:
        labels = [curve.label if curve.key[0] == HOST else f"GPU {curve.label}" for curve in self.curves]
        if [column.title for column in self._columns[1:]] != labels or not self._columns:
            self._columns = reading_columns(labels, self.spec.unit)
        rows = reading_rows(self.curves, self.history.wall_of)
        self._show_in_table(rows, self._columns, self.spec.title)

    def _row_id(self, row: ReadingRow) -> str:
        return str(row.time)

    @Slot(object)
    def _update_read_out(self, time: float | None) -> None:
        """Show the values at the cursor as text, or the latest values without a cursor."""
        if not self.isVisible():
            return
        at = self.history.end if time is None else time
        if at is None or not self._shown:
            self._read_out.setText("")
            return
        values = {label: self.history.series(*key).value_at(at) for key, label, _ in self._shown}
        known = [value for value in values.values() if value is not None]
        if not known:
            texts = ["no readings"]
        elif len(values) == 1 or len(values) > _MOST_READ_OUT:
            texts = [_DASH.join(value_text(self.spec.unit, end) for end in sorted({min(known), max(known)}))]
        else:
            texts = [f"{label}: {value_text(self.spec.unit, value)}" for label, value in values.items()]
        clock = [] if time is None else [clock_text(self.history.wall_of(time))]
        self._read_out.setText("   ".join([*clock, *texts]))

    def _add_menu(self) -> None:
        more = IconButton(self._theme, "more", "Arrange the plot")
        menu = QMenu(more)
        menu.addAction("Move &back", lambda: self.moved.emit(-1))
        menu.addAction("Move &forward", lambda: self.moved.emit(1))
        menu.addAction("&Hide this plot", self.hidden.emit)
        more.set_menu(menu)
        self._bar.addWidget(more)


def reading_rows(curves: list[Curve], wall_of: Callable[[float], float]) -> tuple[ReadingRow, ...]:
    """Return a table row for each time at which a curve has a point, the latest first."""
    extremes: dict[float, dict[int, tuple[float, float]]] = {}
    for curve_index, curve in enumerate(curves):
        for time, low, high in zip(*(column.tolist() for column in curve.columns), strict=True):
            extremes.setdefault(time, {})[curve_index] = (low, high)
    return tuple(ReadingRow(time, clock_text(wall_of(time)), extremes[time]) for time in sorted(extremes, reverse=True))


def reading_columns(labels: list[str], unit: Unit) -> tuple[Column[ReadingRow], ...]:
    """Return a table column for the time and one for each curve."""
    times: Column[ReadingRow] = Column(
        "time", "Time", lambda row: row.time, lambda row: row.clock, help="Time of the reading"
    )
    curves: list[Column[ReadingRow]] = [
        Column(
            str(curve_index),
            label,
            partial(_highest_value, curve_index),
            partial(_range_text, unit, curve_index),
            align="right",
            width=18,
        )
        for curve_index, label in enumerate(labels)
    ]
    return (times, *curves)


def _highest_value(curve_index: int, row: ReadingRow) -> float | None:
    ends = row.ends.get(curve_index)
    return None if ends is None else ends[1]


def _range_text(unit: Unit, curve_index: int, row: ReadingRow) -> str:
    ends = row.ends.get(curve_index)
    if ends is None:
        return ""
    low, high = (value_text(unit, end) for end in ends)
    return low if low == high else f"{low}{_DASH}{high}"
