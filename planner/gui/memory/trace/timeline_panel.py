"""The timeline with its legend, its table, and copy and save."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Slot

from planner.gui.memory.trace.timeline_data import TimelineData
from planner.gui.memory.trace.timeline_legend import TimelineLegend
from planner.gui.memory.trace.timeline_table import TimelineTable
from planner.gui.theme import Theme
from planner.gui.widgets.plot_panel import PlotPanel, Rows
from planner.present import format as fmt

if TYPE_CHECKING:
    from planner.gui.memory.trace.timeline_plot import TimelinePlot


class TimelinePanel(PlotPanel):
    """Live memory over the traced run."""

    def __init__(self, theme: Theme) -> None:
        figures = TimelineTable(theme)
        super().__init__(theme, "Live memory over the run", "timeline", "timeline", figures)
        self._figures = figures
        self._data: TimelineData | None = None
        self._plot: TimelinePlot | None = None
        self._legend = TimelineLegend(theme)
        self._column.addWidget(self._legend)
        self._legend.changed.connect(self._draw)
        self._as_table.toggled.connect(self._fill_table)

    @property
    def data(self) -> TimelineData | None:
        """Return the timeline that is shown."""
        return self._data

    def set_data(self, data: TimelineData) -> None:
        """Draw another timeline; the first one imports the plotting library."""
        self._data = data
        if self._plot is None:
            self._plot = self._make_plot()
        self._legend.set_series(data.series)
        self._draw()
        self._fill_table()
        self._show_page()

    def csv_rows(self) -> Rows:
        """Return a header and a row a moment, with exact bytes."""
        return () if self._data is None else self._data.csv_rows()

    @Slot()
    def _draw(self) -> None:
        if self._plot is not None and self._data is not None:
            self._plot.set_data(self._data, self._legend.hidden)

    @Slot()
    def _fill_table(self) -> None:
        """Make the rows only for someone who looks at them."""
        if self._data is not None and self._as_table.isChecked():
            self._figures.set_data(self._data)

    def _make_plot(self) -> "TimelinePlot":
        # Imported here: the plotting library takes half a second, which must not delay the window.
        from planner.gui.memory.trace.timeline_plot import TimelinePlot

        plot = TimelinePlot(self._theme)
        plot.hovered.connect(self._say)
        self._set_plot(plot)
        return plot

    @Slot(object)
    def _say(self, point: int | None) -> None:
        if self._data is None:
            return
        if point is not None:
            self._read_out.setText(self._data.row(point).moment.told)
        elif self._data.for_tensors_bytes is not None and not self._data.card_in_view:
            card = f"{self._data.card or 'The card'} has {fmt.size(self._data.for_tensors_bytes)} for tensors"
            self._read_out.setText(card)
        else:
            self._read_out.setText("")
