"""The sensitivity curve with the choice of the number that it goes over."""

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QFontMetrics

from planner.gui.memory.curves.data import CurveData
from planner.gui.memory.curves.table import CurveTable
from planner.gui.theme import Theme
from planner.gui.widgets.inputs.choice_field import ChoiceField
from planner.gui.widgets.plot_panel import PlotPanel, Rows
from planner.plan.explore import Axis, CurvePoint
from planner.present import format as fmt

if TYPE_CHECKING:
    from planner.gui.memory.curves.plot import CurvePlot

_WIDEST: Final = "Number of cards"


class CurvePanel(PlotPanel):
    """Memory over one of a few numbers of the plan.

    `axis_chosen` carries the number to go over, `value_chosen` a value that was clicked.
    """

    axis_chosen = Signal(object)
    value_chosen = Signal(object)

    def __init__(self, theme: Theme) -> None:
        figures = CurveTable(theme)
        super().__init__(theme, "Memory over", "curve", "memory-curve", figures)
        self._figures = figures
        self._data: CurveData | None = None
        self._plot: CurvePlot | None = None
        self.over = ChoiceField(theme, ())
        self.over.set_name("Memory over")
        self.over.setMinimumWidth(QFontMetrics(theme.font()).horizontalAdvance(_WIDEST) + 2 * theme.spacing.huge)
        self._bar.insertWidget(1, self.over)
        self.over.edited.connect(self.axis_chosen)
        self._figures.chosen.connect(self.value_chosen)

    @property
    def data(self) -> CurveData | None:
        """Return the curve that is shown."""
        return self._data

    def offer(self, options: tuple[tuple[Axis, str], ...], current: Axis) -> None:
        """Offer these numbers to go over."""
        self.over.set_options(options)
        self.over.set_value(current)

    def set_data(self, data: CurveData) -> None:
        """Draw another curve; the first one imports the plotting library."""
        self._data = data
        if self._plot is None:
            self._plot = self._make_plot()
        self._plot.set_data(data)
        self._figures.set_data(data)
        self._show_page()

    def csv_rows(self) -> Rows:
        """Return a header and a row a point, with exact bytes."""
        return () if self._data is None else self._data.csv_rows()

    def _make_plot(self) -> "CurvePlot":
        # Imported here: the plotting library takes half a second, which must not delay the window.
        from planner.gui.memory.curves.plot import CurvePlot

        plot = CurvePlot(self._theme)
        plot.hovered.connect(self._say)
        plot.chosen.connect(self.value_chosen)
        self._set_plot(plot)
        return plot

    @Slot(object)
    def _say(self, point: CurvePoint | None) -> None:
        if self._data is None:
            return
        said = point or self._data.current
        size = fmt.size_with_range(said.total_bytes, said.low_bytes, said.high_bytes)
        host = f", {fmt.size(said.host_bytes)} in RAM" if said.host_bytes else ""
        self._read_out.setText(f"{'' if point else 'now '}{fmt.integer(said.value)}: {size}{host}")
