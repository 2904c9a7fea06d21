"""Data of the plot of one simulated minute."""

from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import Final, Self

from planner.present import format as fmt
from planner.present.columns import Column, number_column, text_column
from planner.serving.result import MinuteInDetail, MinuteMoment, RequestBar

_MOST_BARS: Final = 400
"""Requests that are drawn; more would be thinner than a pixel."""


def _seconds_column(key: str, title: str, about: str) -> Column[RequestBar]:
    return number_column(
        key, title, lambda bar: getattr(bar, key), unit="s", unknown="–", about=about, lower_is_better=None
    )


COLUMNS: Final[tuple[Column[RequestBar], ...]] = (
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
            tuple(column.header for column in COLUMNS),
            *(tuple(column.text(bar) for column in COLUMNS) for bar in self.minute.requests),
        )
