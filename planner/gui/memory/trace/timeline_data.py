"""Data and axis ticks of the memory timeline."""

from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from planner.gui.plot.ticks import Ticks, round_ticks
from planner.memory.result import PhaseName
from planner.present import format as fmt
from planner.present.names import PHASE_TITLES
from planner.present.trace.view import TimelinePoint, TimelineSeries, timeline_point, timeline_series
from planner.trace.files import timeline_rows
from planner.trace.result import TraceResult
from planner.units import GIB, KIB, MIB

_INPUTS: Final = "inputs"
_MARGIN_FACTOR: Final = 1.3
_MAX_CARD_TO_PEAK_RATIO: Final = 2.5
_UNITS: Final = (("GiB", GIB), ("MiB", MIB), ("KiB", KIB))

Rows = tuple[tuple[str, ...], ...]


class PhaseSpan(NamedTuple):
    """Phase from moment `start` to moment `end`; consecutive phases with the same name are merged."""

    name: PhaseName
    title: str
    start: int
    end: int


class TimelineRow(NamedTuple):
    """Point of the live-memory timeline with the live bytes in each series."""

    point: int
    moment: TimelinePoint
    bytes: tuple[int, ...]


@dataclass(frozen=True)
class TimelineData:
    """Live-memory timeline of a trace, and the card's memory for tensors; `card` is the card's name."""

    result: TraceResult
    card: str | None = None

    @cached_property
    def series(self) -> tuple[TimelineSeries, ...]:
        """Return the stacked series of live memory, the lowest series first."""
        return timeline_series(self.result.timeline)

    @cached_property
    def times(self) -> tuple[int, ...]:
        """Return the time of each point, counted in allocations and frees since the start."""
        return self.result.timeline.times

    @cached_property
    def end(self) -> int:
        """Return the end of the time axis, in allocations and frees."""
        ends = (span.end for span in self.result.timeline.spans)
        return max(self.times[-1] + 1 if self.times else 1, *ends, 1)

    @cached_property
    def for_tensors_bytes(self) -> int | None:
        """Return the card's memory for tensors: usable memory minus framework overhead and other processes."""
        result = self.result
        if result.capacity_bytes is None:
            return None
        overhead = result.term("framework_overhead")
        return result.capacity_bytes - result.other_processes_bytes - (overhead.bytes if overhead else 0)

    @property
    def sum_text(self) -> str:
        """Return how the peak of live memory leads to the plan's need: `tensors … + framework overhead … = …`."""
        result, tensors = self.result, self.result.peak_moment.bytes
        overhead = result.term("framework_overhead")
        rest = result.total_bytes - tensors - (overhead.bytes if overhead else 0)
        parts = (
            f"tensors {fmt.size(tensors)}",
            f"framework overhead {fmt.size(overhead.bytes)}" if overhead else "",
            f"what is assumed {fmt.size(rest)}" if rest > 0 else "",
        )
        return f"{' + '.join(filter(None, parts))} = {fmt.size(result.total_bytes)}"

    @property
    def card_text(self) -> str:
        """Return the card's memory for tensors of its usable memory; empty if unknown."""
        if self.for_tensors_bytes is None:
            return ""
        usable = f"of {fmt.size(self.result.capacity_bytes)} usable"
        return f"{self.card or 'The card'}: {fmt.size(self.for_tensors_bytes)} for tensors, {usable}"

    @cached_property
    def card_in_view(self) -> bool:
        """Return whether the card's memory is close enough to the peak to be drawn on the memory axis."""
        card = self.for_tensors_bytes
        return card is not None and 0 < card <= _MAX_CARD_TO_PEAK_RATIO * self.result.peak_moment.bytes

    @cached_property
    def top_bytes(self) -> float:
        """Return the upper end of the memory axis in bytes."""
        card = self.for_tensors_bytes if self.card_in_view else None
        return max(self.result.peak_moment.bytes, card or 0, 1) * _MARGIN_FACTOR

    @cached_property
    def unit(self) -> tuple[str, int]:
        """Return the unit of the memory axis and its size in bytes."""
        return next((unit for unit in _UNITS if self.top_bytes >= unit[1]), _UNITS[-1])

    @cached_property
    def phases(self) -> tuple[PhaseSpan, ...]:
        """Return the phases to label."""
        spans: list[PhaseSpan] = []
        for span in self.result.timeline.spans:
            if spans and spans[-1].name == span.name and span.start <= spans[-1].end:
                spans[-1] = spans[-1]._replace(title=PHASE_TITLES[span.name], end=span.end)
            elif span.end > span.start:
                step = "" if span.name == "load" else f" {span.step + 1}"
                spans.append(PhaseSpan(span.name, f"{PHASE_TITLES[span.name]}{step}", span.start, span.end))
        return tuple(spans)

    def stack(self, hidden: Collection[str] = ()) -> list[tuple[TimelineSeries, list[float]]]:
        """Return each series with its upper edge in the axis' unit, lowest first, without the `hidden` series."""
        below, edges = [0] * len(self.times), []
        for series in self.series:
            if series.category in hidden:
                continue
            below = [low + own for low, own in zip(below, series.bytes, strict=True)]
            edges.append((series, [value / self.unit[1] for value in below]))
        return edges

    def point_at(self, time: float) -> int:
        """Return the index of the last point at or before `time`."""
        return max(0, bisect_right(self.times, time) - 1)

    @cached_property
    def peak_point(self) -> int:
        """Return the index of the point at the memory peak."""
        return self.point_at(self.result.peak_moment.time)

    def row(self, point: int) -> TimelineRow:
        """Return the table row of a point: its moment and the live bytes in each series."""
        moment = timeline_point(self.result.timeline, point)
        return TimelineRow(point, moment, tuple(series.bytes[point] for series in self.series))

    def hover_lines(self, point: int) -> list[str]:
        """Return the hover text of a point: moment, live bytes by category, and the last operator."""
        row = self.row(point)
        moment = row.moment
        by = " in ".join(part for part in (moment.operator, moment.module) if part)
        held = sorted(zip(row.bytes, self.series, strict=True), key=lambda pair: -pair[0])
        when = f"{moment.text} alive {moment.phase}".rstrip()
        return [
            f"{when} · moment {fmt.integer(moment.time)} of {fmt.integer(self.end)}",
            *([f"last operator: {by}"] if by else []),
            *([moment.line] if moment.line else []),
            *(f"{series.title}: {fmt.size(size)}" for size, series in held if size),
        ]

    def csv_rows(self) -> Rows:
        """Return the CSV rows of the timeline: a header, and a row per point with exact sizes in bytes."""
        return tuple(tuple(map(str, row)) for row in timeline_rows(self.result.timeline))


def role_of(series: TimelineSeries) -> str:
    """Return the theme color role for a series: the role of its memory term; inputs have their own role."""
    return _INPUTS if series.category == _INPUTS else series.term


def live_memory_ticks(data: TimelineData, tick_count: int) -> Ticks:
    """Return about `tick_count` ticks for the memory axis in its unit."""
    return round_ticks(0, data.top_bytes / data.unit[1], tick_count)


def moment_ticks(data: TimelineData, tick_count: int) -> Ticks:
    """Return about `tick_count` ticks for the time axis."""
    return round_ticks(0, data.end, tick_count, whole=True)
