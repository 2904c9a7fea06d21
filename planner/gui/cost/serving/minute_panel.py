"""Panel with one simulated minute of a service: each request's wait, prompt and answer, and the cache in use."""

from typing import TYPE_CHECKING, Final

from planner.gui.cost.serving.served_minute import COLUMNS, ServedMinute
from planner.gui.plot.legend import Legend, LegendEntry
from planner.gui.plot.panel import DataPanel
from planner.gui.theme import Theme
from planner.present import format as fmt
from planner.serving.result import RequestBar

if TYPE_CHECKING:
    from planner.gui.cost.serving.minute_plot import MinutePlot

_HEIGHT: Final = 260
_LEGEND: Final = (
    LegendEntry("waiting", "Waiting", "border"),
    LegendEntry("reading", "Prompt", "series-2"),
    LegendEntry("answering", "Answer", "series-1"),
    LegendEntry("cache", "KV cache in use, of the height", "text"),
)


class MinutePanel(DataPanel[ServedMinute]):
    """Panel with the requests of one simulated minute as bars; the read-out has the state of all replicas."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "", "minute", "served-minute")
        self.setMinimumHeight(_HEIGHT)
        self.legend = Legend(theme)
        self.legend.set_entries(_LEGEND)
        self._column.insertWidget(1, self.legend)

    def _make_chart(self) -> "MinutePlot":
        from planner.gui.cost.serving.minute_plot import MinutePlot

        plot = MinutePlot(self._theme)
        self.legend.toggled.connect(plot.hide_parts)
        return plot

    def _fill_table(self) -> None:
        if self.data is not None:
            self._show_in_table(self.data.minute.requests, COLUMNS).setAccessibleName("Requests of the minute")

    def _row_id(self, bar: RequestBar) -> str:
        return str(bar.request)

    def _read_out_text(self, data: ServedMinute, point: float | None) -> str:
        if point is None:
            hidden = len(data.minute.requests) - len(data.bars)
            more = f", the first {fmt.integer(len(data.bars))} are drawn" if hidden else ""
            return f"{fmt.plural(len(data.minute.requests), 'request')}{more}"
        moments = data.moments_at(point)
        waiting, reading = (sum(getattr(each, name) for each in moments) for name in ("waiting", "reading"))
        decoding = sum(each.decoding for each in moments)
        cache = max((each.cache_fraction for each in moments), default=0.0)
        return (
            f"at {fmt.significant(point)} s: {fmt.integer(waiting)} waiting, {fmt.integer(reading)} prompts, "
            f"{fmt.integer(decoding)} answers, KV cache {fmt.percent(cache)} full"
        )
