"""Panel with one simulated minute of a service: each request's wait, prompt and answer, and the cache in use."""

from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Self

from planner.gui.plot.legend import Legend, LegendEntry
from planner.gui.plot.panel import DataPanel
from planner.gui.theme import Theme
from planner.present import format as fmt
from planner.present.columns import Column, number_column, text_column
from planner.serving.result import MinuteInDetail, MinuteMoment, RequestBar

if TYPE_CHECKING:
    from planner.gui.cost.serving.minute_plot import MinutePlot

_HEIGHT: Final = 260
_MOST_BARS: Final = 400
"""Requests that are drawn; more would be thinner than a pixel."""
_LEGEND: Final = (
    LegendEntry("waiting", "Waiting", "border"),
    LegendEntry("reading", "Prompt", "series-2"),
    LegendEntry("answering", "Answer", "series-1"),
    LegendEntry("cache", "KV cache in use, of the height", "text"),
)


def _seconds_column(key: str, title: str, about: str) -> Column[RequestBar]:
    return number_column(
        key, title, lambda bar: getattr(bar, key), unit="s", unknown="–", about=about, lower_is_better=None
    )


_COLUMNS: Final[tuple[Column[RequestBar], ...]] = (
    number_column("request", "Request", lambda bar: bar.request, about="Number of the request"),
    number_column("replica", "Replica", lambda bar: bar.replica + 1, about="Replica that answers it"),
    number_column("prompt", "Prompt tokens", lambda bar: bar.prompt_tokens, about="Tokens of its prompt"),
    number_column("output", "Answer tokens", lambda bar: bar.output_tokens, about="Tokens of its answer"),
    _seconds_column("arrival", "Arrives", "When the request arrives"),
    _seconds_column("scheduled", "Scheduled", "When its prompt is first worked on"),
    _seconds_column("first_token", "First token", "When its first token is there"),
    _seconds_column("end", "Ends", "When its last token is there"),
    text_column(
        "preempted", "Preempted", lambda bar: fmt.yes_no(bool(bar.preempted)), about="Whether it lost its cache"
    ),
)


@dataclass(frozen=True, slots=True)
class ServedMinute:
    """One simulated minute, whose times count from its beginning, with its first requests as they arrive."""

    minute: MinuteInDetail

    @classmethod
    def counted_from_zero(cls, minute: MinuteInDetail) -> Self:
        """Return a minute of a longer simulation, with its own beginning as zero."""
        begin = minute.begin_seconds

        def since(seconds: float | None) -> float | None:
            return None if seconds is None else seconds - begin

        bars = (
            replace(
                bar,
                arrival=bar.arrival - begin,
                scheduled=since(bar.scheduled),
                first_token=since(bar.first_token),
                end=since(bar.end),
                preempted=tuple(seconds - begin for seconds in bar.preempted),
            )
            for bar in minute.requests
        )
        moments = (replace(moment, seconds=moment.seconds - begin) for moment in minute.moments)
        return cls(
            minute.evolve(
                begin_seconds=0.0,
                end_seconds=minute.end_seconds - begin,
                requests=tuple(bars),
                moments=tuple(moments),
            )
        )

    @property
    def bars(self) -> tuple[RequestBar, ...]:
        """Return the requests that are drawn."""
        return tuple(sorted(self.minute.requests, key=lambda bar: bar.arrival))[:_MOST_BARS]

    def moments_at(self, seconds: float) -> tuple[MinuteMoment, ...]:
        """Return the state of each replica at a moment: the last that is known of it."""
        found: dict[int, MinuteMoment] = {}
        moments = self.minute.moments
        for moment in moments[: bisect_right(moments, seconds, key=lambda each: each.seconds)]:
            found[moment.replica] = moment
        return tuple(found[replica] for replica in sorted(found))

    def csv_rows(self) -> tuple[tuple[str, ...], ...]:
        """Return the header and a row for each request."""
        return (
            tuple(column.header for column in _COLUMNS),
            *(tuple(column.text(bar) for column in _COLUMNS) for bar in self.minute.requests),
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
            self._show_in_table(self.data.minute.requests, _COLUMNS).setAccessibleName("Requests of the minute")

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
