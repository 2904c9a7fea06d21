"""All plots over one time, with the legend of the cards above and the band of events below."""

from functools import partial
from typing import Final

from PySide6.QtCore import QSize, QTimer, Signal, Slot
from PySide6.QtGui import QActionGroup, QFontMetrics, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QMenu, QScrollArea, QWidget

from planner.gui.monitor.plots.curves import Owner, is_known, plotted_owners
from planner.gui.monitor.plots.event_band import EventBand
from planner.gui.monitor.plots.panel import MetricPanel
from planner.gui.monitor.plots.specs import PlotSpec, arranged
from planner.gui.monitor.plots.time_view import TimeSpanView
from planner.gui.monitor.settings import MOST_COLUMNS, PlotSettings
from planner.gui.plot.legend import Legend, LegendEntry
from planner.gui.settings import SettingsStore
from planner.gui.theme import Theme
from planner.gui.threads import import_finished
from planner.gui.widgets.layout import in_column
from planner.monitor.history import HOST, History

_DRAWING: Final = "planner.gui.monitor.plots.metric_plot"
_IMPORTING_MS: Final = 50
_COLUMN_LETTERS: Final = 140
# One plot with its heading.
_LEAST_LINES: Final = 13


class PlotGrid(QWidget):
    """The plots that the settings name and that anything is known for.

    Call `refresh` when there are new readings; it draws what is in sight and nothing while it is hidden. `view` is the
    time that is shown. `mark_wanted` carries the time at which a note is to be put, and `failed` a `PlannerError` that
    saving met.
    """

    mark_wanted = Signal(float)
    failed = Signal(object)

    def __init__(self, theme: Theme, history: History, settings: SettingsStore) -> None:
        super().__init__()
        self._theme, self._history, self._settings = theme, history, settings
        self.view = TimeSpanView(self)
        self.legend = Legend(theme)
        self.band = EventBand(theme, history, self.view)
        self._panels: dict[str, MetricPanel] = {}
        self._lines: dict[tuple[str, str], tuple[float, str]] = {}
        self._placed: tuple[tuple[str, ...], int] = ((), 0)
        self._owners: tuple[Owner, ...] = ()
        self._is_busy = False
        # A child, so that what still waits ends with the plots.
        self._again = QTimer(self, singleShot=True)
        self._inner = QWidget()
        self._grid = QGridLayout(self._inner)
        self._scroll = _Panels()
        self._lay_out()
        self._connect()

    @property
    def panels(self) -> tuple[MetricPanel, ...]:
        """Return the plots that are shown, in their order."""
        return tuple(self._panels[key] for key in self._placed[0])

    def set_history(self, history: History) -> None:
        """Show another history, from its end."""
        self._history = history
        self.band.history = history
        for panel in self._panels.values():
            panel.history = history
        self.view.point_at(None)
        self.view.set_follow(True)
        self.refresh()

    def set_line(self, metric: str, owner: str, value: float | None, title: str = "") -> None:
        """Put a line of a card (its UUID) or of `HOST` at a value; without a value take it away."""
        self._lines.pop((metric, owner), None)
        if value is not None:
            self._lines[metric, owner] = (value, title)
        for panel in self._panels.values():
            self._give_lines(panel)

    @Slot()
    def refresh(self) -> None:
        """Draw what is known by now."""
        start, end = self._history.start, self._history.end
        if not self.isVisible() or start is None or end is None:
            return
        self._is_busy = True
        self.view.set_known(start, end)
        self._is_busy = False
        self._owners = plotted_owners(self._history)
        self.legend.set_entries(tuple(LegendEntry(owner.uuid, owner.name, owner.stroke) for owner in self._owners))
        self.legend.setVisible(len(self._owners) > 1)
        if self._panels:
            self._place()
        else:
            # To make them all takes some hundredths of a second, in which nothing else is to happen.
            self._draw_soon()
        self._draw()

    def plots_menu(self) -> QMenu:
        """Return the choice of plots; those that nothing is known for are said to be so."""
        menu = QMenu("&Plots", self)
        for spec in arranged(self._remembered.order):
            known = is_known(self._history, spec)
            action = menu.addAction(spec.title if known else f"{spec.title} (not measured here)")
            action.setCheckable(True)
            action.setChecked(spec.key not in self._remembered.hidden)
            action.toggled.connect(partial(self.show_plot, spec.key))
        menu.addSeparator()
        menu.addMenu(self._columns_menu(menu))
        menu.addAction("&Restore the usual plots", lambda: self._remember(PlotSettings()))
        return menu

    def _columns_menu(self, parent: QMenu) -> QMenu:
        menu = QMenu("&Columns", parent)
        group = QActionGroup(menu)
        for count in (None, *range(1, MOST_COLUMNS + 1)):
            action = group.addAction("as many as there is room for" if count is None else str(count))
            action.setCheckable(True)
            action.setChecked(count == self._remembered.columns)
            action.triggered.connect(lambda _checked, count=count: self.set_columns(count))
        menu.addActions(group.actions())
        return menu

    def show_plot(self, key: str, shown: bool) -> None:
        """Show a plot, or hide it, from now on."""
        others = tuple(other for other in self._remembered.hidden if other != key)
        self._remember(self._remembered.evolve(hidden=others if shown else (*others, key)))

    def set_columns(self, count: int | None) -> None:
        """Put the plots into so many columns from now on; None into as many as there is room for."""
        self._remember(self._remembered.evolve(columns=count))

    def move_plot(self, key: str, step: int) -> None:
        """Put a plot before the one before, or after the next one, among those that are shown."""
        shown = list(self._placed[0])
        place = shown.index(key)
        other = place + step
        if not 0 <= other < len(shown):
            return
        order = [spec.key for spec in arranged(self._remembered.order)]
        order.remove(key)
        order.insert(order.index(shown[other]) + (step > 0), key)
        self._remember(self._remembered.evolve(order=tuple(order)))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Have as many columns as there is room for."""
        super().resizeEvent(event)
        self._draw_soon()

    def showEvent(self, event: QShowEvent) -> None:
        """Draw what came while the plots were hidden."""
        super().showEvent(event)
        self._draw_soon()

    @property
    def _remembered(self) -> PlotSettings:
        return self._settings.current.monitor.plots

    def _remember(self, changed: PlotSettings) -> None:
        self._settings.update(monitor=self._settings.current.monitor.evolve(plots=changed))
        self.refresh()

    def _place(self) -> None:
        """Put the plots into as many columns as there is room for."""
        remembered = self._remembered
        specs = [
            spec
            for spec in arranged(remembered.order)
            if spec.key not in remembered.hidden and is_known(self._history, spec)
        ]
        wide = QFontMetrics(self._theme.font()).averageCharWidth() * _COLUMN_LETTERS
        columns = remembered.columns or max(1, min(MOST_COLUMNS, self.width() // wide))
        placed = tuple(spec.key for spec in specs), columns
        if placed == self._placed:
            return
        self._placed = placed
        for panel in self._panels.values():
            self._grid.removeWidget(panel)
            panel.setVisible(panel.spec.key in placed[0])
        for number, spec in enumerate(specs):
            panel = self._panels.get(spec.key) or self._make_panel(spec)
            self._grid.addWidget(panel, number // columns, number % columns)
        for column in range(MOST_COLUMNS):
            self._grid.setColumnStretch(column, int(column < columns))
        # Where they lie is known once the layout has been at work, which what waits already may come before.
        self._again.start(0)

    def _make_panel(self, spec: PlotSpec) -> MetricPanel:
        panel = self._panels[spec.key] = MetricPanel(self._theme, spec, self._history, self.view)
        panel.moved.connect(partial(self.move_plot, spec.key))
        panel.hidden.connect(partial(self.show_plot, spec.key, False))
        panel.double_clicked.connect(self.mark_wanted)
        panel.failed.connect(self.failed)
        self._give_lines(panel)
        return panel

    def _give_lines(self, panel: MetricPanel) -> None:
        spec = panel.spec
        panel.lines = {
            owner: line
            for (metric, owner), line in self._lines.items()
            if metric in spec.metrics and (owner == HOST) == spec.is_host
        }

    @Slot()
    def _draw(self) -> None:
        """Draw the plots that are in sight and were drawn before."""
        self._draw_panels(most_new=0)

    def _draw_panels(self, most_new: int) -> None:
        """Draw the plots that are in sight; of those that are seen for the first time only so many, the rest soon."""
        if not self.isVisible() or self._is_busy or self._history.end is None:
            return
        owners = tuple(owner for owner in self._owners if owner.uuid not in self.legend.hidden)
        self.band.refresh(owners, self._scroll.width() - self._scroll.viewport().width())
        if not import_finished(_DRAWING):
            self._draw_soon(_IMPORTING_MS)
            return
        seen = [panel for panel in self.panels if not panel.visibleRegion().isEmpty()]
        new = [panel for panel in seen if not panel.is_drawn]
        for panel in seen:
            if panel not in new[most_new:]:
                panel.set_owners(owners)
                panel.refresh()
        if new[most_new:]:
            self._draw_soon()

    @Slot()
    def _draw_soon(self, after_ms: int = 0) -> None:
        if not self._again.isActive():
            self._again.start(after_ms)

    @Slot()
    def _draw_again(self) -> None:
        if self.isVisible() and self._history.end is not None:
            self._owners = plotted_owners(self._history)
            self._place()
        # To make a plot takes some hundredths of a second, in which no other is to be made.
        self._draw_panels(most_new=1)

    def _connect(self) -> None:
        self._again.timeout.connect(self._draw_again)
        self.view.moved.connect(self._draw)
        self.legend.toggled.connect(self._draw)
        self.band.mark_wanted.connect(self.mark_wanted)
        self._scroll.verticalScrollBar().valueChanged.connect(self._draw)

    def _lay_out(self) -> None:
        spacing = self._theme.spacing
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(spacing.large)
        self._scroll.setWidget(self._inner)
        self._scroll.setWidgetResizable(True)
        self._scroll.setMinimumHeight(QFontMetrics(self._theme.font()).height() * _LEAST_LINES)
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setAccessibleName("Plots")
        in_column(self.legend, (self._scroll, 1), self.band, owner=self, spacing=spacing.small)


class _Panels(QScrollArea):
    """The plots, which take what the window has left."""

    def sizeHint(self) -> QSize:
        """Ask for no more than is needed."""
        return self.minimumSize()
