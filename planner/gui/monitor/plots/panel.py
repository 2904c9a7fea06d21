"""One plot with its heading, its read-out and what can be done with it."""

from datetime import datetime
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QMenu, QToolButton

from planner.gui.monitor.plots.clock_ticks import clock_text
from planner.gui.monitor.plots.curves import Curve, Key, Owner, curve, keys_of, range_of
from planner.gui.monitor.plots.legend import Legend, LegendEntry
from planner.gui.monitor.plots.reading_table import ReadingTable
from planner.gui.monitor.plots.scales import Range, axis_range, value_text
from planner.gui.monitor.plots.specs import PlotSpec
from planner.gui.monitor.plots.view import TimeView
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import IconButton
from planner.gui.widgets.plot_panel import PlotPanel, Rows
from planner.monitor.history import History

if TYPE_CHECKING:
    from planner.gui.monitor.plots.metric_plot import Line, MetricPlot

_LINES_HIGH: Final = 10
_EXPORTED_COLUMNS: Final = 2000
_HEADER: Final = ("clock", "seconds", "curve", "quantity", "lowest", "highest")


class MetricPanel(PlotPanel):
    """The plot of `spec`; `moved` asks for another place (−1, +1), `hidden` not to be shown."""

    moved = Signal(int)
    hidden = Signal()
    double_clicked = Signal(float)

    def __init__(self, theme: Theme, spec: PlotSpec, history: History, view: TimeView) -> None:
        table = ReadingTable(theme, spec.title, spec.unit)
        super().__init__(theme, spec.title, "plot", spec.key, table)
        self.spec = spec
        self._figures, self._history, self._view = table, history, view
        self._plot: MetricPlot | None = None
        self._owners: tuple[Owner, ...] = ()
        self._lines: dict[str, tuple[float, str]] = {}
        self._drawn: list[Curve] = []
        self._hidden_keys: frozenset[Key] = frozenset()
        self.legend = Legend(theme)
        self.legend.toggled.connect(self._on_legend_toggled)
        self._column.insertWidget(1, self.legend)
        self.legend.setVisible(spec.is_host and len(spec.metrics) > 1)
        self._add_menu()
        self._pages.setMinimumHeight(QFontMetrics(theme.font()).height() * _LINES_HIGH)
        self._as_table.toggled.connect(self.refresh)
        view.cursor_moved.connect(self._say)

    @property
    def is_drawn(self) -> bool:
        """Return whether the plot was made."""
        return self._plot is not None

    @property
    def curves(self) -> tuple[Curve, ...]:
        """Return what is drawn."""
        return tuple(self._drawn)

    def set_history(self, history: History) -> None:
        """Show another history."""
        self._history = history

    def set_owners(self, owners: tuple[Owner, ...]) -> None:
        """Show these cards."""
        self._owners = owners
        if self.spec.is_host:
            entries = [LegendEntry(key, label, number) for key, label, number in keys_of(self.spec, ())]
            self.legend.set_entries(tuple(entries))

    def set_lines(self, lines: dict[str, tuple[float, str]]) -> None:
        """Show these lines, by their owner, at a value and with a title."""
        self._lines = lines

    @Slot()
    def refresh(self) -> None:
        """Draw what the view shows; the first time makes the plot."""
        plot = self._plot or self._make_plot()
        span = Range(self._view.start, self._view.end)
        self._drawn = self._curves(span, plot.columns)
        limits = [] if self.spec.limit is None else self._limits(self.spec.limit, span, plot.columns)
        lines = self._all_lines()
        seen = range_of([*self._drawn, *limits])
        plot.set_lines(lines)
        plot.set_marks(self._history.marks)
        ends = axis_range(self.spec.unit, seen, tuple(line.value for line in lines))
        plot.draw(self._drawn, limits, ends, self._history.wall_of)
        if self._as_table.isChecked():
            self._figures.set_curves(self._drawn, self._history.wall_of)
        self._say(self._view.cursor)

    def csv_rows(self) -> Rows:
        """Return a header and a row a reading; of very many a row a stretch of time with its extremes."""
        rows = [_HEADER]
        for each in self._curves(Range(self._view.start, self._view.end), _EXPORTED_COLUMNS):
            for time, low, high in zip(*(column.tolist() for column in each.columns), strict=True):
                clock = datetime.fromtimestamp(self._history.wall_of(time)).isoformat(timespec="milliseconds")
                rows.append((clock, f"{time:.3f}", each.label, each.key[1], f"{low:g}", f"{high:g}"))
        return tuple(rows)

    def _curves(self, span: Range, columns: int) -> list[Curve]:
        keys = (each for each in keys_of(self.spec, self._owners) if each[0] not in self._hidden_keys)
        return [curve(self._history, *each, span, columns) for each in keys if len(self._history.series(*each[0]))]

    def _limits(self, metric: str, span: Range, columns: int) -> list[Curve]:
        keys = (((owner.uuid, metric), owner.label, owner.stroke) for owner in self._owners)
        return [curve(self._history, *each, span, columns) for each in keys if len(self._history.series(*each[0]))]

    def _all_lines(self) -> "list[Line]":
        from planner.gui.monitor.plots.metric_plot import Line

        strokes = {owner.uuid: owner.stroke for owner in self._owners}
        lines = [Line(value, title) for value, title in self._facts().items()]
        own = ((owner, *line) for owner, line in self._lines.items() if owner in strokes or self.spec.is_host)
        return [*lines, *(Line(value, title, strokes.get(owner)) for owner, value, title in own)]

    def _facts(self) -> dict[float, str]:
        """Return where the fixed limits of the shown cards lie, each with what it is called."""
        shown = {owner.uuid for owner in self._owners}
        found: dict[float, str] = {}
        for device in self._history.inventory.devices:
            for name, title in self.spec.facts:
                value = device.fact(name)
                if device.uuid in shown and value is not None:
                    found[value] = f"{title}: {value_text(self.spec.unit, value)}"
        return found

    def _make_plot(self) -> "MetricPlot":
        # Imported here: the plotting library takes half a second, which must not delay the window.
        from planner.gui.monitor.plots.metric_plot import MetricPlot

        self._plot = plot = MetricPlot(self._theme, self.spec.title, self.spec.unit, self._view)
        plot.gestures.double_clicked.connect(self.double_clicked)
        self._set_plot(plot)
        self._show_page()
        return plot

    @Slot(object)
    def _say(self, time: float | None) -> None:
        """Tell the values at the cursor, or the latest."""
        if not self.isVisible():
            return
        at = self._history.end if time is None else time
        if at is None or not self._drawn:
            self._read_out.setText("")
            return
        values = [self._history.series(*each.key).at(at) for each in self._drawn]
        told = [value_text(self.spec.unit, value) for value in values]
        if all(value is None for value in values):
            told = ["no readings"]
        elif len(told) > 1:
            told = [f"{each.label}: {text}" for each, text in zip(self._drawn, told, strict=True)]
        clock = [] if time is None else [clock_text(self._history.wall_of(time))]
        self._read_out.setText("   ".join([*clock, *told]))

    @Slot(object)
    def _on_legend_toggled(self, hidden: frozenset[Key]) -> None:
        self._hidden_keys = hidden
        self.refresh()

    def _add_menu(self) -> None:
        more = IconButton(self._theme, "more", "Arrange the plot")
        menu = QMenu(more)
        menu.addAction("Move &before the one before", lambda: self.moved.emit(-1))
        menu.addAction("Move &after the next", lambda: self.moved.emit(1))
        menu.addAction("&Hide this plot", self.hidden.emit)
        more.setMenu(menu)
        more.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self._bar.addWidget(more)
