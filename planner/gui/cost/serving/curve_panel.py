"""Panel with the latencies of a service over the rate of its requests."""

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Slot

from planner.gui.cost.serving.rate_curve import COLUMNS, LATENCIES, RateCurve
from planner.gui.plot.panel import DataPanel
from planner.gui.theme import Theme
from planner.gui.widgets.inputs.choice_field import ChoiceField
from planner.present import format as fmt
from planner.present.serving.traffic import LATENCY_HEADERS, rate_text
from planner.serving.result import RatePoint
from planner.serving.targets import Targets

if TYPE_CHECKING:
    from planner.gui.cost.serving.curve_plot import RatePlot

_HEIGHT: Final = 240


class RateCurvePanel(DataPanel[RateCurve]):
    """Panel with a latency over the rate of requests: its median and percentile, its target, and the plan's rate."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "", "curve", "latency-over-rate")
        self.setMinimumHeight(_HEIGHT)
        self.over = ChoiceField(theme, tuple((name, LATENCY_HEADERS[name]) for name in LATENCIES))
        self.over.set_name("Latency")
        self.over.setToolTip("Latency on the y axis")
        self.over.set_value("ttft")
        self._bar.insertWidget(1, self.over)
        self._targets = Targets()
        self._percent = 95.0
        self._planned: float | None = None
        self._points: tuple[RatePoint, ...] = ()
        self.over.edited.connect(self._redraw)

    def show_points(
        self, points: tuple[RatePoint, ...], targets: Targets, percent: float, planned_rate: float | None
    ) -> None:
        """Draw the points so far; `percent` is the percentile of the targets."""
        self._points, self._targets, self._percent, self._planned = points, targets, percent, planned_rate
        self._redraw()

    @Slot()
    def _redraw(self) -> None:
        name = next(latency for latency in LATENCIES if latency == self.over.value)
        limit = next((target.seconds for target in self._targets.limits if target.latency == name), None)
        if self._points:
            self.set_data(RateCurve(self._points, name, self._percent, limit, self._planned))

    def _make_chart(self) -> "RatePlot":
        from planner.gui.cost.serving.curve_plot import RatePlot

        return RatePlot(self._theme)

    def _fill_table(self) -> None:
        if self.data is not None:
            self._show_in_table(self.data.points, COLUMNS).setAccessibleName("Latency over the rate of requests")

    def _row_id(self, point: RatePoint) -> str:
        return f"{point.requests_per_second:.6f}"

    def _read_out_text(self, data: RateCurve, point: RatePoint | None) -> str:
        shown = point or (None if data.planned_rate is None else data.nearest(data.planned_rate))
        if shown is None:
            return ""
        figures = (
            f"{name} {fmt.duration(data.seconds(shown, percent))}"
            for name, percent in (("median", 50.0), (f"p{data.percent:g}", data.percent))
        )
        waits = " (cannot keep up)" if shown.simulation.saturated else ""
        return f"at {rate_text(shown.requests_per_second)}: {', '.join(figures)}{waits}"
