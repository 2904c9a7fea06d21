"""The panel of a plot: heading, legend, read-out, table and menu."""

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QMenu

from planner.gui.monitor.plots.curves import Curve, Key, LimitLine, Owner, curve, curve_keys, value_range
from planner.gui.monitor.plots.specs import AxisRange, PlotSpec, metric_range, value_text
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

_LINES_HIGH: Final = 10
_EXPORTED_COLUMNS: Final = 2000
_HEADER: Final = ("clock", "seconds", "curve", "quantity", "lowest", "highest")
_DASH: Final = " – "


class ReadingRow(NamedTuple):
    """The lowest and the highest values from one time to the next, by the index of the curve."""

    time: float
    clock: str
    ends: dict[int, tuple[float, float]]


class MetricPanel(PlotPanel):
    """The plot of `spec`; `moved` (−1 or +1) and `hidden` are requests of the user to move or hide it.

    `lines` are the values and titles of horizontal lines, by owner.
    """

    moved = Signal(int)
    hidden = Signal()
    double_clicked = Signal(float)

    def __init__(self, theme: Theme, spec: PlotSpec, history: History, view: TimeSpanView) -> None:
        super().__init__(theme, spec.title, "plot", spec.key)
        self.spec = spec
        self.history, self._view = history, view
        self._plot: MetricPlot | None = None
        self._owners: tuple[Owner, ...] = ()
        self.lines: dict[str, tuple[float, str]] = {}
        self._columns: tuple[Column[ReadingRow], ...] = ()
        self.curves: list[Curve] = []
        self.legend = Legend(theme)
        self.legend.toggled.connect(self.refresh)
        self._column.insertWidget(1, self.legend)
        self.legend.setVisible(spec.is_host and len(spec.metrics) > 1)
        self._add_menu()
        self._pages.setMinimumHeight(QFontMetrics(theme.font()).height() * _LINES_HIGH)
        view.cursor_moved.connect(self._say)

    @property
    def is_drawn(self) -> bool:
        """Return whether the plot has been created."""
        return self._plot is not None

    def set_owners(self, owners: tuple[Owner, ...]) -> None:
        """Show these cards."""
        self._owners = owners
        if self.spec.is_host:
            entries = [LegendEntry(key, label, number) for key, label, number in curve_keys(self.spec, ())]
            self.legend.set_entries(tuple(entries))

    @Slot()
    def refresh(self) -> None:
        """Draw the displayed time; the first call creates the plot."""
        plot = self._plot or self._make_plot()
        span = AxisRange(self._view.start, self._view.end)
        self.curves = self._curves(span, plot.columns)
        limits = self._limits(span, plot.columns)
        lines = self._all_lines()
        values = value_range([*self.curves, *limits])
        plot.set_lines(lines)
        plot.set_marks(self.history.marks)
        ends = metric_range(self.spec.unit, values, tuple(line.value for line in lines))
        plot.draw(self.curves, limits, ends, self.history.wall_of)
        self._show_page()
        self._say(self._view.cursor)

    def csv_rows(self) -> Rows:
        """Return the header and a row for each reading; many readings are condensed to extremes of time spans."""
        rows = [_HEADER]
        for each in self._curves(AxisRange(self._view.start, self._view.end), _EXPORTED_COLUMNS):
            for time, low, high in zip(*(column.tolist() for column in each.columns), strict=True):
                clock = datetime.fromtimestamp(self.history.wall_of(time)).isoformat(timespec="milliseconds")
                rows.append((clock, f"{time:.3f}", each.label, each.key[1], f"{low:g}", f"{high:g}"))
        return tuple(rows)

    def _curves(self, span: AxisRange, columns: int) -> list[Curve]:
        shown = [each for each in curve_keys(self.spec, self._owners) if each[0] not in self.legend.hidden]
        return self._known(shown, span, columns)

    def _limits(self, span: AxisRange, columns: int) -> list[Curve]:
        if self.spec.limit is None:
            return []
        keys = [((owner.uuid, self.spec.limit), owner.label, owner.stroke) for owner in self._owners]
        return self._known(keys, span, columns)

    def _known(self, keys: Iterable[tuple[Key, str, int]], span: AxisRange, columns: int) -> list[Curve]:
        return [curve(self.history, *each, span, columns) for each in keys if len(self.history.series(*each[0]))]

    def _all_lines(self) -> list[LimitLine]:
        strokes = {owner.uuid: owner.stroke for owner in self._owners}
        lines = [LimitLine(value, title) for value, title in self._facts().items()]
        own = ((owner, *line) for owner, line in self.lines.items() if owner in strokes or self.spec.is_host)
        return [*lines, *(LimitLine(value, title, strokes.get(owner)) for owner, value, title in own)]

    def _facts(self) -> dict[float, str]:
        """Return the fixed limits of the shown cards with their titles."""
        shown = {owner.uuid for owner in self._owners}
        found: dict[float, str] = {}
        for device in self.history.inventory.devices:
            for name, title in self.spec.facts:
                value = device.fact(name)
                if device.uuid in shown and value is not None:
                    found[value] = f"{title}: {value_text(self.spec.unit, value)}"
        return found

    def _make_plot(self) -> "MetricPlot":
        from planner.gui.monitor.plots.metric_plot import MetricPlot

        self._plot = plot = MetricPlot(self._theme, self.spec.title, self.spec.unit, self._view)
        plot.gestures.double_clicked.connect(self.double_clicked)
        self._set_chart(plot)
        return plot

    def _fill_table(self) -> None:
        labels = [each.label if each.key[0] == HOST else f"Card {each.label}" for each in self.curves]
        if [column.title for column in self._columns[1:]] != labels or not self._columns:
            self._columns = reading_columns(labels, self.spec.unit)
        rows = reading_rows(self.curves, self.history.wall_of)
        self._show_in_table(rows, self._columns).setAccessibleName(self.spec.title)

    def _row_id(self, row: ReadingRow) -> str:
        return str(row.time)

    @Slot(object)
    def _say(self, time: float | None) -> None:
        """Show the values at the cursor, or the latest ones."""
        if not self.isVisible():
            return
        at = self.history.end if time is None else time
        if at is None or not self.curves:
            self._read_out.setText("")
            return
        values = [self.history.series(*each.key).at(at) for each in self.curves]
        texts = [value_text(self.spec.unit, value) for value in values]
        if all(value is None for value in values):
            texts = ["no readings"]
        elif len(texts) > 1:
            texts = [f"{each.label}: {text}" for each, text in zip(self.curves, texts, strict=True)]
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
    """Return a row for each time at which a curve has a point, the latest first."""
    found: dict[float, dict[int, tuple[float, float]]] = {}
    for place, each in enumerate(curves):
        for time, low, high in zip(*(column.tolist() for column in each.columns), strict=True):
            found.setdefault(time, {})[place] = (low, high)
    return tuple(ReadingRow(time, clock_text(wall_of(time)), found[time]) for time in sorted(found, reverse=True))


def reading_columns(labels: list[str], unit: Unit) -> tuple[Column[ReadingRow], ...]:
    """Return a column for the time and one for each curve."""
    times: Column[ReadingRow] = Column("time", "Time", lambda row: row.time, lambda row: row.clock)
    curves: list[Column[ReadingRow]] = [
        Column(str(place), label, partial(_highest, place), partial(_text, unit, place), align="right", width=18)
        for place, label in enumerate(labels)
    ]
    return (times, *curves)


def _highest(place: int, row: ReadingRow) -> float | None:
    ends = row.ends.get(place)
    return None if ends is None else ends[1]


def _text(unit: Unit, place: int, row: ReadingRow) -> str:
    ends = row.ends.get(place)
    if ends is None:
        return ""
    low, high = (value_text(unit, end) for end in ends)
    return low if low == high else f"{low}{_DASH}{high}"
