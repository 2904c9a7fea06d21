"""Grid of plots with the legend of the cards above, and the event band that belongs below them."""

from functools import partial
from time import thread_time
from typing import Final

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QActionGroup, QFontMetrics, QMoveEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QGridLayout, QMenu, QWidget

from planner.gui.monitor.plots.curves import Owner, has_readings, plotted_owners
from planner.gui.monitor.plots.event_band import EventBand, EventList
from planner.gui.monitor.plots.panel import MetricPanel
from planner.gui.monitor.plots.plot_list import PlotSpec, plots_in_order
from planner.gui.monitor.plots.time_view import TimeSpanView
from planner.gui.monitor.settings import MOST_COLUMNS, PlotSettings
from planner.gui.plot.legend import Legend, LegendEntry
from planner.gui.settings import SettingsStore
from planner.gui.theme import Theme
from planner.gui.threads import CalmTimer, import_finished
from planner.gui.widgets.layout import ScrollColumn, in_column, in_row, laid_out_at_once
from planner.monitor.history import HOST, History

_DRAWING: Final = "planner.gui.monitor.plots.metric_plot"
_IMPORTING_MS: Final = 50
# So much processor time may one pass of drawing take; painting follows.
_PASS_SECONDS: Final = 0.008
_MADE_A_PASS: Final = 2
# A reading is drawn after this time at the latest, however narrow its column is.
_LATEST_SECONDS: Final = 2.0
_COLUMN_LETTERS: Final = 71
_LISTED_EVENTS: Final = 50
# The band takes the width of the first column, the list of events what is left of it.
_ALL_STRETCH: Final = 1000
# Qt's QWIDGETSIZE_MAX, which the binding lacks.
_ANY_WIDTH: Final = 16_777_215


class PlotGrid(QWidget):
    """Grid of the plots that are enabled in the settings and have readings.

    Call `refresh` after new readings, and `draw_visible` when other plots come into sight; only visible plots are
    drawn. `view` is the displayed time span, `band_row` the layout of the event band, aligned with the first column.
    `clicked` carries the time at a click, `mark_wanted` that of a mark that the user wants to add, `failed` the
    `PlannerError` of a failed save.
    """

    clicked = Signal(float)
    mark_wanted = Signal(float)
    failed = Signal(object)

    def __init__(self, theme: Theme, history: History, settings: SettingsStore) -> None:
        super().__init__()
        self._theme, self._history, self._settings = theme, history, settings
        self.view = TimeSpanView(self)
        self.legend = Legend(theme)
        self.band = EventBand(theme, history, self.view)
        self.events = EventList(theme)
        self.band_row = in_row((self.band, _ALL_STRETCH), (self.events, 1), spacing=theme.spacing.large)
        self._panels: dict[str, MetricPanel] = {}
        self._lines: dict[tuple[str, str], tuple[float, str]] = {}
        self._arrangement: tuple[tuple[str, ...], int] = ((), 0)
        self._owners: tuple[Owner, ...] = ()
        self._shown_owners: tuple[Owner, ...] = ()
        self._undrawn: list[MetricPanel] = []
        self._drawn: tuple[object, ...] = ()
        self._is_stale = False
        self._is_updating_view = False
        # A child object, so that pending drawing ends with the plots.
        self._draw_timer = CalmTimer(self)
        self._area: ScrollColumn | None = None
        self._grid = QGridLayout()
        self._lay_out()
        self._connect()

    @property
    def panels(self) -> tuple[MetricPanel, ...]:
        """Return the shown plots in the displayed order."""
        return tuple(self._panels[key] for key in self._arrangement[0])

    def set_history(self, history: History, span_seconds: float | None) -> None:
        """Show the latest `span_seconds` of `history`, None for everything, from the next `refresh` on."""
        self._history, self._drawn, self._arrangement = history, (), ((), 0)
        self.band.history = history
        for panel in self._panels.values():
            panel.history = history
        # Or they would show the readings of before under the name of what is shown now.
        for shown in (*self._panels.values(), self.legend, self.band, self.events):
            shown.hide()
        self._is_updating_view = True
        self.view.move_cursor(None)
        if history.start is not None and history.end is not None:
            self.view.set_reading_times(history.start, history.end)
        self.view.set_span(span_seconds)
        self._is_updating_view = False

    def set_limit_line(self, metric: str, owner: str, value: float | None, title: str = "") -> None:
        """Draw a horizontal line at `value` for an owner (a card UUID or `HOST`); None removes the line."""
        self._lines.pop((metric, owner), None)
        if value is not None:
            self._lines[metric, owner] = (value, title)
        for panel in self._panels.values():
            self._update_limit_lines(panel)

    @Slot()
    def refresh(self) -> None:
        """Draw the plots, the legend and the event band with the latest readings; without any, show none of them."""
        start, end = self._history.start, self._history.end
        if not self.isVisible():
            return
        history = self._history
        lines = tuple(self._lines.items())
        seconds = self._column_seconds
        place = end if end is None or not seconds else end // seconds
        drawn = (
            id(history),
            place,
            history.inventory,
            history.marks,
            history.event_changes,
            lines,
            self._plot_settings,
        )
        if drawn == self._drawn:
            return  # no plot has a new column, or in a replay only the cursor moves
        self._drawn = drawn
        self.band.setVisible(end is not None)
        if start is None or end is None:
            self.events.hide()
        else:
            self._is_updating_view = True
            self.view.set_reading_times(start, end)
            self._is_updating_view = False
        self._owners = plotted_owners(self._history)
        self.legend.set_entries(tuple(LegendEntry(owner.uuid, owner.name, owner.stroke) for owner in self._owners))
        self.legend.setVisible(len(self._owners) > 1)
        if self._panels:
            self._arrange_panels()
        elif end is not None:
            # Creating all plots at once would block the window for some hundredths of a second.
            self._draw_soon()
        self.draw_visible()

    def plots_menu(self) -> QMenu:
        """Return the menu of plots to show or hide; plots without readings are labelled."""
        menu = QMenu("&Plots", self)
        for spec in plots_in_order(self._plot_settings.order):
            has_any_readings = has_readings(self._history, spec)
            action = menu.addAction(spec.title if has_any_readings else f"{spec.title} (no readings)")
            action.setCheckable(True)
            action.setChecked(spec.key not in self._plot_settings.hidden)
            action.toggled.connect(partial(self.show_plot, spec.key))
        menu.addSeparator()
        menu.addMenu(self._columns_menu(menu))
        menu.addAction("&Restore the default plots", lambda: self._store_settings(PlotSettings()))
        return menu

    def _columns_menu(self, parent: QMenu) -> QMenu:
        menu = QMenu("&Columns", parent)
        group = QActionGroup(menu)
        for count in (None, *range(1, MOST_COLUMNS + 1)):
            action = group.addAction("as many as fit" if count is None else str(count))
            action.setCheckable(True)
            action.setChecked(count == self._plot_settings.columns)
            action.triggered.connect(lambda _checked, count=count: self.set_columns(count))
        menu.addActions(group.actions())
        return menu

    def show_plot(self, key: str, shown: bool) -> None:
        """Show or hide the plot whose key is `key`."""
        others = tuple(other for other in self._plot_settings.hidden if other != key)
        self._store_settings(self._plot_settings.evolve(hidden=others if shown else (*others, key)))

    def set_columns(self, count: int | None) -> None:
        """Set the number of plots side by side; None means as many as fit."""
        self._store_settings(self._plot_settings.evolve(columns=count))

    def move_plot(self, key: str, step: int) -> None:
        """Move the plot `key` by `step` (−1 or +1) among the shown plots."""
        shown = list(self._arrangement[0])
        place = shown.index(key)
        other = place + step
        if not 0 <= other < len(shown):
            return
        order = [spec.key for spec in plots_in_order(self._plot_settings.order)]
        order.remove(key)
        order.insert(order.index(shown[other]) + (step > 0), key)
        self._store_settings(self._plot_settings.evolve(order=tuple(order)))

    def fill(self, area: ScrollColumn) -> None:
        """Make the rows so high that `area`, in which the plots scroll, ends with a whole row."""
        self._area = area
        area.resized.connect(self._draw_all_soon)

    def moveEvent(self, event: QMoveEvent) -> None:
        """Adapt the height of the rows to the room that what is above leaves."""
        super().moveEvent(event)
        self._draw_all_soon()

    def _fit_rows(self) -> None:
        panels, columns = self.panels, self._arrangement[1]
        if self._area is None or not panels:
            return
        gap, least = self._grid.verticalSpacing(), max(panel.minimumSizeHint().height() for panel in panels[:columns])
        room = self._area.viewport().height() - self.y() - panels[0].y() + gap
        seen = room // (least + gap)
        if seen and self._grid.rowMinimumHeight(0) != (height := room // seen - gap):
            for row in range(-(-len(panels) // columns)):
                self._grid.setRowMinimumHeight(row, height)
            self._draw_all_soon()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Adapt the number of plot columns to the new width."""
        super().resizeEvent(event)
        self._draw_all_soon()

    def showEvent(self, event: QShowEvent) -> None:
        """Draw the readings that arrived while the plots were hidden."""
        super().showEvent(event)
        self._draw_all_soon()

    @property
    def _column_seconds(self) -> float:
        """Return how long the plots stay the same, whose curves have no narrower columns; 0 before all are drawn."""
        columns = [panel.columns for panel in self.panels if panel.is_in_sight]
        return min(self.view.span / max(columns), _LATEST_SECONDS) if columns and all(columns) else 0.0

    @property
    def _plot_settings(self) -> PlotSettings:
        return self._settings.current.monitor.plots

    def _store_settings(self, changed: PlotSettings) -> None:
        self._settings.update(monitor=self._settings.current.monitor.evolve(plots=changed))
        self.refresh()

    def _arrange_panels(self) -> None:
        """Arrange the enabled plots that have readings in columns; many new ones are first made in several passes."""
        stored = self._plot_settings
        specs = [
            spec
            for spec in plots_in_order(stored.order)
            if spec.key not in stored.hidden and has_readings(self._history, spec)
        ]
        wide = QFontMetrics(self._theme.font()).averageCharWidth() * _COLUMN_LETTERS
        columns = stored.columns or _even_columns(len(specs), max(1, min(MOST_COLUMNS, self.width() // wide)))
        new = [spec for spec in specs if spec.key not in self._panels]
        for spec in new[:_MADE_A_PASS]:
            self._make_panel(spec)
        if len(new) > _MADE_A_PASS:
            self._draw_all_soon()
            return
        arrangement = tuple(spec.key for spec in specs), columns
        if arrangement == self._arrangement:
            return
        self._arrangement = arrangement
        # At once, or each that is shown would give all those before it another size.
        with laid_out_at_once(self):
            for key, panel in self._panels.items():
                self._grid.removeWidget(panel)
                if key not in arrangement[0]:
                    panel.hide()
            for number, spec in enumerate(specs):
                self._grid.addWidget(self._panels[spec.key], number // columns, number % columns)
                self._panels[spec.key].show()  # once it has a parent: shown before, it would be a window for a moment
            for column in range(MOST_COLUMNS):
                self._grid.setColumnStretch(column, int(column < columns))
            for row in range(self._grid.rowCount()):
                self._grid.setRowMinimumHeight(row, 0)  # those that are left without plots
        # Their geometry is known only after the layout, which may come after an already scheduled drawing.
        self._draw_all_soon()

    def _make_panel(self, spec: PlotSpec) -> None:
        panel = self._panels[spec.key] = MetricPanel(self._theme, spec, self._history, self.view)
        panel.moved.connect(partial(self.move_plot, spec.key))
        panel.hidden.connect(partial(self.show_plot, spec.key, False))
        panel.clicked.connect(self.clicked)
        panel.double_clicked.connect(self.mark_wanted)
        panel.failed.connect(self.failed)
        self._update_limit_lines(panel)

    def _update_limit_lines(self, panel: MetricPanel) -> None:
        spec = panel.spec
        panel.lines = {
            owner: line
            for (metric, owner), line in self._lines.items()
            if metric in spec.metrics and (owner == HOST) == spec.is_host
        }

    @Slot()
    def draw_visible(self) -> None:
        """Redraw the visible plots; what would take too long for one pass of the event loop follows in the next."""
        self._list_undrawn()
        # Creating a plot takes a hundredth of a second, so that each has a later pass of its own.
        self._draw_some(may_create=False)

    def _list_undrawn(self) -> None:
        """Note which plots are visible, first those that have been created, and show the events."""
        self._undrawn = []
        if not self.isVisible() or self._is_updating_view or self._history.end is None:
            return
        self._shown_owners = tuple(owner for owner in self._owners if owner.uuid not in self.legend.hidden)
        self._refresh_events(self._shown_owners)
        visible = [panel for panel in self.panels if not panel.visibleRegion().isEmpty()]
        self._undrawn = sorted(visible, key=lambda panel: panel.needs_plot)

    def _draw_some(self, *, may_create: bool) -> None:
        """Draw plots that are due for the time of one pass; with `may_create`, create one for the next pass."""
        if self._undrawn and not import_finished(_DRAWING):
            self._draw_soon(_IMPORTING_MS)
            return
        began = thread_time()
        while self._undrawn and not self._undrawn[0].needs_plot and thread_time() - began < _PASS_SECONDS:
            panel = self._undrawn.pop(0)
            panel.set_owners(self._shown_owners)
            panel.refresh()
        if self._undrawn:
            if may_create and self._undrawn[0].needs_plot:
                self._undrawn[0].create_plot()
            self._draw_soon()

    def _refresh_events(self, owners: tuple[Owner, ...]) -> None:
        """Show the events in the band below the first column, and as lines of text below the other columns."""
        panels = self.panels
        right = panels[0].geometry().right() + 1 if panels else self.width()
        has_columns = len(panels) > 1 and self._arrangement[1] > 1
        self.band.setMaximumWidth(right if has_columns else _ANY_WIDTH)
        self.band.refresh(owners, right)
        self.events.setVisible(has_columns)
        self._list_events()

    @Slot()
    def _list_events(self) -> None:
        """List the latest events up to the cursor."""
        if self.events.isVisible():
            self.events.show_lines(self.band.latest_lines(_LISTED_EVENTS))

    @Slot()
    def _draw_soon(self, after_ms: int = 0) -> None:
        if not self._draw_timer.isActive():
            self._draw_timer.start(after_ms)

    @Slot()
    def _draw_pending(self) -> None:
        if self._is_stale or not self._undrawn:
            self._is_stale = False
            if self.isVisible() and self._history.end is not None:
                self._owners = plotted_owners(self._history)
                self._arrange_panels()
                if not self._is_stale:
                    self._fit_rows()
                if self._is_stale:
                    return  # what is drawn gets its place in the next pass
            self._list_undrawn()
        self._draw_some(may_create=True)

    @Slot()
    def _draw_all_soon(self) -> None:
        """Arrange and draw the plots once the layout has placed them."""
        self._is_stale = True
        self._draw_timer.start(0)

    def _connect(self) -> None:
        self._draw_timer.timeout.connect(self._draw_pending)
        self.view.moved.connect(self.draw_visible)
        self.view.cursor_moved.connect(self._list_events)
        self.legend.toggled.connect(self.draw_visible)
        self.band.gestures.clicked.connect(self.clicked)
        self.band.mark_wanted.connect(self.mark_wanted)

    def _lay_out(self) -> None:
        spacing = self._theme.spacing
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(spacing.medium)
        in_column(self.legend, (self._grid, 1), owner=self, spacing=spacing.tiny)


def _even_columns(plots: int, most: int) -> int:
    """Return the fewest columns with which `plots` need no more rows than with `most`: two, not three, for four."""
    rows = -(-plots // most)
    return -(-plots // max(1, rows)) or 1
