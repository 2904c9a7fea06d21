"""The curve of costs with its read-out, its table, copy and save."""

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QVBoxLayout, QWidget

from planner.cost.result import CurvePoint
from planner.gui.cost.curve.data import CostCurve
from planner.gui.theme import Theme
from planner.gui.widgets.plot_panel import PlotPanel, Rows
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.widgets.tables.record_table import RecordTable
from planner.present import format as fmt
from planner.present.columns import Column, numbers

if TYPE_CHECKING:
    from planner.gui.cost.curve.plot import CostPlot

_COLUMNS: Final[tuple[Column[CurvePoint], ...]] = (
    numbers("years", "Years", lambda point: point.years, width=8),
    numbers("hours", "GPU-hours", lambda point: point.gpu_hours, width=12),
    numbers("rent", "Renting", lambda point: point.rent_usd, show=fmt.money),
    numbers("rent_low", "at least", lambda point: point.rent_low_usd, show=fmt.money),
    numbers("rent_high", "at most", lambda point: point.rent_high_usd, show=fmt.money),
    numbers("own", "Owning", lambda point: point.own_usd, show=fmt.money),
    numbers("own_low", "at least", lambda point: point.own_low_usd, show=fmt.money),
    numbers("own_high", "at most", lambda point: point.own_high_usd, show=fmt.money),
)


class CostCurvePanel(PlotPanel):
    """What was spent by when, in today's money."""

    def __init__(self, theme: Theme) -> None:
        table = QWidget()
        super().__init__(theme, "Spent by then, in today's money", "curve", "cost-curve", table)
        self._model = RecordTableModel(_COLUMNS, lambda point: f"{point.years:.4f}", self)
        view = RecordTable(self._model, theme)
        view.setAccessibleName("Costs over time")
        layout = QVBoxLayout(table)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(view)
        self._curve: CostCurve | None = None
        self._plot: CostPlot | None = None

    @property
    def curve(self) -> CostCurve | None:
        """Return what is drawn."""
        return self._curve

    def set_curve(self, curve: CostCurve) -> None:
        """Show another curve; the first one waits for `draw`."""
        self._curve = curve
        self._model.set_records(curve.points)
        if self._plot is not None:
            self._plot.set_curve(curve)

    def draw(self) -> None:
        """Draw the first curve, which imports the plotting library: half a second that the answer must not wait for."""
        if self._plot is None and self._curve is not None:
            self._plot = self._make_plot()
            self._plot.set_curve(self._curve)
            self._show_page()

    def csv_rows(self) -> Rows:
        """Return a header and a row for each point."""
        return () if self._curve is None else self._curve.csv_rows()

    def _make_plot(self) -> "CostPlot":
        # Imported here: the plotting library must not delay the window.
        from planner.gui.cost.curve.plot import CostPlot

        plot = CostPlot(self._theme)
        plot.hovered.connect(self._say)
        self._set_plot(plot)
        return plot

    @Slot(object)
    def _say(self, point: CurvePoint | None) -> None:
        if self._curve is None:
            return
        said = point or self._curve.points[-1]
        self._read_out.setText(
            f"after {fmt.plain(said.years)} years, {fmt.significant(said.gpu_hours)} GPU-hours: "
            f"renting {fmt.money(said.rent_usd)}, owning {fmt.money(said.own_usd)}"
        )
