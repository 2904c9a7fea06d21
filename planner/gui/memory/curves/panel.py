"""Panel of the memory curve with the choice of its x axis."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QFontMetrics, QResizeEvent

from planner.gui.memory.curves.data import CurveData
from planner.gui.plot.panel import DataPanel
from planner.gui.theme import Theme
from planner.gui.widgets.inputs.choice_field import ChoiceField
from planner.plan.memory_curve import Axis, MemoryPoint
from planner.present import format as fmt
from planner.present.columns import Column, number_column

if TYPE_CHECKING:
    from planner.gui.memory.curves.plot import CurvePlot

_WIDEST_AXIS_TITLE: Final = "Number of GPUs"
_LEAST_HEIGHT: Final = 190
_TALLEST: Final = 420
_WINDOW_PARTS: Final = 5
"""The width of the window divided by the height of the curve."""


def _gib_column(
    key: str, title: str, get_bytes: Callable[[MemoryPoint], int | None], about: str
) -> Column[MemoryPoint]:
    return number_column(
        key, title, get_bytes, unit="GiB", show=lambda value: fmt.gib(round(value)), width=15, about=about
    )


_COLUMNS: Final[tuple[Column[MemoryPoint], ...]] = (
    number_column(
        "value",
        "Value",
        lambda point: point.value,
        show=lambda value: fmt.integer(round(value)),
        width=12,
        about="Value of the setting on the x axis",
    ),
    _gib_column(
        "memory",
        "Memory",
        lambda point: point.total_bytes,
        about="Memory that the plan needs on the fullest card with this value",
    ),
    _gib_column("low", "At least", lambda point: point.low_bytes, about="One case in twenty needs less"),
    _gib_column("high", "At most", lambda point: point.high_bytes, about="One case in twenty needs more"),
    _gib_column(
        "host",
        "Host memory",
        lambda point: point.host_bytes,
        about="RAM of the machine that the plan needs with this value",
    ),
)


class CurvePanel(DataPanel[CurveData]):
    """Panel with the memory curve over one number of the plan, such as the batch size.

    `axis_chosen` carries the chosen x axis, `value_chosen` a value that was clicked or confirmed in the table.
    """

    axis_chosen = Signal(object)
    value_chosen = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Memory over", "curve", "memory-curve")
        self.setMaximumHeight(_TALLEST)
        self.over = ChoiceField(theme, ())
        self.over.set_name("Memory over")
        self.over.setToolTip("Setting on the x axis")
        self.over.setMinimumWidth(
            QFontMetrics(theme.font()).horizontalAdvance(_WIDEST_AXIS_TITLE) + 2 * theme.spacing.huge
        )
        self._bar.insertWidget(1, self.over)
        # The choice leaves it no room in a narrow panel.
        self._bar.insertStretch(self._bar.indexOf(self._read_out), 1)
        self._column.insertWidget(1, self._read_out)
        self.over.edited.connect(self.axis_chosen)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the curve higher in a wider window.

        Not in a wider panel: a higher curve may bring a scroll bar, which makes the panel narrower and the curve lower,
        without end.
        """
        super().resizeEvent(event)
        self.setMinimumHeight(max(_LEAST_HEIGHT, min(_TALLEST, self.window().width() // _WINDOW_PARTS)))

    def offer(self, options: tuple[tuple[Axis, str], ...], current: Axis) -> None:
        """Set the choices for the x axis, and select `current`."""
        self.over.set_options(options)
        self.over.set_value(current)

    def _make_chart(self) -> "CurvePlot":
        from planner.gui.memory.curves.plot import CurvePlot

        chart = CurvePlot(self._theme)
        chart.chosen.connect(self._on_activated)
        return chart

    def _fill_table(self) -> None:
        data = self.data
        if data is None:
            return
        table = self._show_in_table(data.points, _COLUMNS)
        table.setAccessibleName(f"Memory over {data.title.lower()}")
        table.show_column("host", any(point.host_bytes for point in data.points))
        table.mark(self._row_id(data.current))

    def _row_id(self, point: MemoryPoint) -> str:
        return str(point.value)

    @Slot(object)
    def _on_activated(self, point: MemoryPoint) -> None:
        self.value_chosen.emit(point.value)

    def _read_out_text(self, data: CurveData, point: MemoryPoint | None) -> str:
        described = point or data.current
        size = fmt.size_with_range(described.total_bytes, described.low_bytes, described.high_bytes)
        host = f", {fmt.size(described.host_bytes)} in host memory" if point and described.host_bytes else ""
        return f"{'' if point else f'at {data.title.lower()} '}{fmt.integer(described.value)}: {size}{host}"
