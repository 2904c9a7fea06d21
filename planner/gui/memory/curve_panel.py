"""The sensitivity curve with the choice of the field that it goes over."""

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, Signal, Slot
from PySide6.QtWidgets import QButtonGroup, QToolButton

from planner.gui.memory.curve_data import CurveData
from planner.gui.memory.curve_table import CurveTable
from planner.gui.theme import Theme
from planner.gui.widgets.plot_panel import PlotPanel, Rows
from planner.plan.explore import CurvePoint
from planner.present import format as fmt

if TYPE_CHECKING:
    from planner.gui.memory.curve_plot import CurvePlot


class CurvePanel(PlotPanel):
    """Memory over one of a few numbers of the plan.

    `field_chosen` carries the position of the number to go over, `value_chosen` a value that was clicked.
    """

    field_chosen = Signal(object)
    value_chosen = Signal(object)

    def __init__(self, theme: Theme) -> None:
        figures = CurveTable(theme)
        super().__init__(theme, "Memory over", "curve", "memory-curve", figures)
        self._figures = figures
        self._data: CurveData | None = None
        self._plot: CurvePlot | None = None
        self._switches: list[QToolButton] = []
        self._group = QButtonGroup(self)
        self._figures.chosen.connect(self.value_chosen)

    @property
    def data(self) -> CurveData | None:
        """Return the curve that is shown."""
        return self._data

    def offer_fields(self, titles: tuple[str, ...], current: int) -> None:
        """Offer these numbers to go over."""
        while len(self._switches) < len(titles):
            self._add_switch()
        for position, button in enumerate(self._switches):
            button.setVisible(position < len(titles))
            if position < len(titles):
                button.setText(titles[position])
                button.setAccessibleName(self.tr("Memory over {0}").format(titles[position].lower()))
        with QSignalBlocker(self._group):
            self._switches[current].setChecked(True)

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
        from planner.gui.memory.curve_plot import CurvePlot

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
        size = f"{fmt.size(said.total_bytes)} ({fmt.size_range(said.low_bytes, said.high_bytes)})"
        self._read_out.setText(f"{'' if point else 'now '}{fmt.integer(said.value)}: {size}")

    def _add_switch(self) -> None:
        button = QToolButton()
        button.setCheckable(True)
        self._group.addButton(button)
        button.clicked.connect(partial(self._on_switched, len(self._switches)))
        self._switches.append(button)
        self._bar.insertWidget(len(self._switches), button)

    def _on_switched(self, position: int, _checked: bool = True) -> None:
        self.field_chosen.emit(position)
