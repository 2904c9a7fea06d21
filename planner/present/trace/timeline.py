"""The timeline of a trace, ready to be drawn and to be told point by point."""

from typing import NamedTuple

from planner.memory.result import TermName
from planner.present import format as fmt
from planner.present.trace.words import CATEGORY_TITLES, operator_name, phase_moment, reached
from planner.trace.analysis.memory import TERM_OF
from planner.trace.recording import CATEGORIES, Category
from planner.trace.result import Timeline


class TimelineSeries(NamedTuple):
    """The live bytes of one category over the run, for a stacked plot; it looks like its `term`."""

    category: Category
    title: str
    term: TermName
    bytes: tuple[int, ...]


class Moment(NamedTuple):
    """One point of the timeline, as it is told when it is pointed at."""

    time: int
    bytes: int
    text: str
    phase: str
    operator: str
    module: str
    line: str

    @property
    def told(self) -> str:
        """Return `12.3 GiB in the forward pass of step 1: mm in layers.3 (net.py:42)`."""
        where = reached(self.operator, self.module, self.line)
        when = f"{self.text} {self.phase}".strip()
        return f"{when}: {where}" if where else when


def timeline_series(timeline: Timeline) -> tuple[TimelineSeries, ...]:
    """Return what to stack, what stays first and what comes and goes on top; empty categories are left out."""
    return tuple(
        TimelineSeries(series.category, CATEGORY_TITLES[series.category], TERM_OF[series.category], series.bytes)
        for series in sorted(timeline.series, key=lambda series: CATEGORIES.index(series.category))
        if any(series.bytes)
    )


def moment_at(timeline: Timeline, point: int) -> Moment:
    """Return what is told about one point of the timeline, numbered from 0."""
    time = timeline.times[point]
    total = sum(series.bytes[point] for series in timeline.series)
    span = next((span for span in timeline.spans if span.start <= time < span.end), None)
    return Moment(
        time=time,
        bytes=total,
        text=fmt.size(total),
        phase=phase_moment(span.name, span.step) if span else "",
        operator=operator_name(timeline.operators[point]),
        module=timeline.modules[point],
        line=timeline.lines[point],
    )
