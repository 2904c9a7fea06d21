"""Panel with the latencies of a service over the rate of its requests."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Slot

from planner.gui.plot.panel import DataPanel
from planner.gui.theme import Theme
from planner.gui.widgets.inputs.choice_field import ChoiceField
from planner.present import format as fmt
from planner.present.serving.simulation import rate_columns
from planner.present.serving.traffic import LATENCY_HEADERS, rate_text
from planner.serving.result import RatePoint
from planner.serving.targets import Latency, Targets

if TYPE_CHECKING:
    from planner.gui.cost.serving.curve_plot import RatePlot

_LATENCIES: Final[tuple[Latency, ...]] = ("ttft", "tpot", "e2e")
_COLUMNS: Final = rate_columns(_LATENCIES)
_HEIGHT: Final = 240


@dataclass(frozen=True, slots=True)
class RateCurve:
    """Points of a service over the rate of requests, with the latency that is drawn, its target and the plan's rate."""

    points: tuple[RatePoint, ...]
    latency: Latency
    percent: float
    target_seconds: float | None
    planned_rate: float | None

    def seconds(self, point: RatePoint, percent: float) -> float | None:
        """Return a percentile of the drawn latency at a point."""
        table = point.simulation.latency(self.latency)
        return None if table is None else table.percentile(percent).seconds

    def nearest(self, rate: float) -> RatePoint | None:
        """Return the point with the rate nearest to `rate`."""
        return min(self.points, key=lambda point: abs(point.requests_per_second - rate), default=None)

    def csv_rows(self) -> tuple[tuple[str, ...], ...]:
        """Return the header and a row for each point."""
        return (
            tuple(column.header for column in _COLUMNS),
            *(tuple(column.text(point) for column in _COLUMNS) for point in self.points),
        )


class RateCurvePanel(DataPanel[RateCurve]):
    """Panel with a latency over the rate of requests: its median and percentile, its target, and the plan's rate."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "", "curve", "latency-over-rate")
        self.setMinimumHeight(_HEIGHT)
        self.over = ChoiceField(theme, tuple((name, LATENCY_HEADERS[name]) for name in _LATENCIES))
        self.over.set_name("Latency")
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
        name = next(latency for latency in _LATENCIES if latency == self.over.value)
        limit = next((target.seconds for target in self._targets.limits if target.latency == name), None)
        if self._points:
            self.set_data(RateCurve(self._points, name, self._percent, limit, self._planned))

    def _make_chart(self) -> "RatePlot":
        from planner.gui.cost.serving.curve_plot import RatePlot

        return RatePlot(self._theme)

    def _fill_table(self) -> None:
        if self.data is not None:
            self._show_in_table(self.data.points, _COLUMNS).setAccessibleName("Latency over the rate of requests")

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
