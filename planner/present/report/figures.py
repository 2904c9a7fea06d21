"""Figures of a report: memory, the costs over time, the sensitivity to each input, and readings over time."""

from collections.abc import Callable, Iterator, Sequence
from math import floor, log10
from typing import Final, NamedTuple

from planner.cost.estimate import CostEstimate
from planner.cost.rent_or_buy.uncertainty import Simulation
from planner.present import format as fmt
from planner.present.cost.amounts import SwingRow
from planner.present.cost.summary import time_axis, years_phrase
from planner.present.memory.view import MemoryBarSegment, MemoryView
from planner.present.report.document import (
    Area,
    Block,
    Bullets,
    Drawing,
    DrawingLabel,
    Polyline,
    Prose,
    Rectangle,
    ReportColumn,
    ReportTable,
    Shape,
)
from planner.present.trace import timeline_series
from planner.trace.result import Timeline
from planner.units import GIB, MIB

_WIDTH: Final = 720.0
_BAR_HEIGHT: Final = 34.0
_LEGEND_COLUMNS: Final = 3
_LEGEND_STEP: Final = 20.0
_SWATCH: Final = 10.0
_TICKS: Final = 4
_ROW: Final = 24.0
_SWINGS: Final = 10
_POINTS: Final = 360
_TIME_UNITS: Final = (("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0), ("seconds", 1.0))
_FLIPS: Final = {True: "changes the decision", False: "does not change it"}
"""What the color of a bar in the tornado chart means, by whether an end of its range changes the decision."""
_SEGMENT_COLORS: Final = {
    "other_processes": "other_processes",
    "free": "free",
    "reserved": "selection",
    "overflow": "bad",
}


class _Frame(NamedTuple):
    """The plot area of a figure, and the largest values of its axes."""

    left: float
    top: float
    right: float
    bottom: float
    most_x: float
    most_y: float

    def x(self, value: float) -> float:
        """Return the horizontal position of `value`."""
        return self.left + (self.right - self.left) * value / self.most_x

    def y(self, value: float) -> float:
        """Return the vertical position of `value`."""
        return self.bottom - (self.bottom - self.top) * value / self.most_y


def memory_figure(view: MemoryView) -> Drawing:
    """Return the bar of what fills the card's memory, with a legend that has every size."""
    shapes: list[Shape] = []
    for segment in view.segments:
        if segment.kind == "overflow":
            continue  # it lies over the parts that do not fit
        start = segment.start_bytes / view.bar_bytes * _WIDTH
        shapes.append(Rectangle(start, 0, segment.share * _WIDTH, _BAR_HEIGHT, _segment_color(segment)))
    if view.capacity_bytes is not None and view.capacity_bytes < view.bar_bytes:
        end = view.capacity_bytes / view.bar_bytes * _WIDTH
        shapes.append(Polyline(((end, -5), (end, _BAR_HEIGHT + 5)), "bad", 2))
        shapes.append(
            DrawingLabel(end - 5, _BAR_HEIGHT + 18, f"usable {fmt.size(view.capacity_bytes)}", "end", "bad", True)
        )
    legend_top = _BAR_HEIGHT + 36
    for index, segment in enumerate(view.segments):
        row, column = divmod(index, _LEGEND_COLUMNS)
        x, y = column * _WIDTH / _LEGEND_COLUMNS, legend_top + row * _LEGEND_STEP
        shapes.append(Rectangle(x, y - _SWATCH + 1, _SWATCH, _SWATCH, _segment_color(segment)))
        shapes.append(DrawingLabel(x + _SWATCH + 6, y, segment.text, is_small=True))
    rows = -(-len(view.segments) // _LEGEND_COLUMNS)
    parts = "; ".join(segment.text for segment in view.segments if segment.kind == "term")
    return Drawing(_WIDTH, legend_top + rows * _LEGEND_STEP, tuple(shapes), f"Memory of one GPU at the peak: {parts}.")


def _segment_color(segment: MemoryBarSegment) -> str:
    return _SEGMENT_COLORS.get(segment.name, segment.name)


def cost_figure(estimate: CostEstimate, simulation: Simulation | None, buying: str) -> Drawing | None:
    """Return the cumulative costs of renting and of `buying`, with the middle four fifths of the draws as bands."""
    points = estimate.result.curve
    if not points:
        return None
    band = simulation.band if simulation else ()
    highest = max(
        *(max(point.rent_usd, point.own_usd) for point in points),
        *(max(point.rent_usd.p90, point.own_usd.p90) for point in band),
        1.0,
    )
    unit, per_year = time_axis(points[-1].years)
    frame = _Frame(64, 12, _WIDTH - 12, 260, points[-1].years * per_year, highest * 1.05)
    shapes: list[Shape] = [*_axes(frame, unit, lambda usd: f"${usd:,.0f}")]
    for color, costs, quantiles in (
        ("series-1", [point.rent_usd for point in points], [point.rent_usd for point in band]),
        ("series-2", [point.own_usd for point in points], [point.own_usd for point in band]),
    ):
        if band:
            times = [frame.x(point.years * per_year) for point in band]
            upper = [(x, frame.y(one.p90)) for x, one in zip(times, quantiles, strict=True)]
            lower = [(x, frame.y(one.p10)) for x, one in zip(times, quantiles, strict=True)]
            shapes.append(Area((*upper, *reversed(lower)), color, 0.18))
        line = ((frame.x(point.years * per_year), frame.y(usd)) for point, usd in zip(points, costs, strict=True))
        shapes.append(Polyline(tuple(line), color, 2))
    crossing = estimate.result.break_even
    if crossing is not None and crossing.years is not None and 0 < crossing.years <= points[-1].years:
        at = frame.x(crossing.years * per_year)
        shapes += [
            Polyline(((at, frame.top), (at, frame.bottom)), "muted", 1, is_dashed=True),
            DrawingLabel(at + 5, frame.top + 10, f"break-even, {years_phrase(crossing.years)}", is_small=True),
        ]
    shapes += _legend(frame, (("series-1", "Renting"), ("series-2", buying)))
    bands = f"; bands: 80 % of {fmt.integer(simulation.draws)} simulated cases" if simulation and band else ""
    return Drawing(
        _WIDTH, frame.bottom + 62, tuple(shapes), f"Cumulative cost in today's money, resale deducted{bands}."
    )


def swing_figure(rows: Sequence[SwingRow], buying: str) -> Drawing | None:
    """Return the tornado chart: what `buying` saves if one input at a time is at an end of its range."""
    shown = rows[:_SWINGS]
    if not shown:
        return None
    ends = [usd for row in shown for usd in (row.low_saving_usd, row.high_saving_usd)]
    low, high = min(0.0, *ends), max(0.0, *ends)
    span = (high - low) or 1.0
    left, right = 330.0, _WIDTH - 60

    def x(usd: float) -> float:
        return left + (right - left) * (usd - low) / span

    shapes: list[Shape] = []
    for index, row in enumerate(shown):
        y = index * _ROW + 6
        start, end = sorted((x(row.low_saving_usd), x(row.high_saving_usd)))
        shapes.append(DrawingLabel(0, y + 12, row.title, is_small=True))
        shapes.append(DrawingLabel(left - 12, y + 12, f"{row.low_value} – {row.high_value}", "end", "muted", True))
        shapes.append(Rectangle(start, y, max(end - start, 1), _ROW - 8, "series-2" if row.flips else "series-1"))
    bottom = len(shown) * _ROW + 4
    shapes.append(Polyline(((x(0), 0), (x(0), bottom)), "text", 1))
    shapes += [
        DrawingLabel(x(low), bottom + 16, fmt.money(low), "middle", "muted", True),
        DrawingLabel(x(high), bottom + 16, fmt.money(high), "middle", "muted", True),
    ]
    kinds = {"series-2" if row.flips else "series-1": _FLIPS[row.flips] for row in shown}
    shapes += _legend(_Frame(left, 0, _WIDTH, bottom - 8, 1, 1), tuple(kinds.items()), columns=2)
    caption = f"What {buying.lower()} saves over renting if one input is at either end of its range."
    return Drawing(_WIDTH, bottom + 54, tuple(shapes), caption)


def timeline_figure(timeline: Timeline) -> Drawing | None:
    """Return the live bytes of a trace over its operations, stacked by category."""
    series = timeline_series(timeline)
    if len(timeline.times) <= 1 or not series:
        return None
    step = max(1, len(timeline.times) // _POINTS)
    totals = [sum(one.bytes[index] for one in series) for index in range(len(timeline.times))]
    # Of each stretch, the moment with the most bytes: the peak must not be lost.
    shown = [
        max(range(start, min(start + step, len(totals))), key=totals.__getitem__)
        for start in range(0, len(totals), step)
    ]
    unit, bytes_each = ("GiB", GIB) if max(totals) >= GIB else ("MiB", MIB)
    frame = _Frame(64, 12, _WIDTH - 12, 240, float(timeline.times[-1]), max(totals) / bytes_each * 1.05)
    shapes: list[Shape] = [*_axes(frame, "operations", lambda value: f"{fmt.plain(value)}{fmt.THIN}{unit}")]
    below = [0] * len(shown)
    for one in series:
        above = [start + one.bytes[index] for start, index in zip(below, shown, strict=True)]
        xs = [frame.x(timeline.times[index]) for index in shown]
        upper = [(x, frame.y(value / bytes_each)) for x, value in zip(xs, above, strict=True)]
        lower = [(x, frame.y(value / bytes_each)) for x, value in zip(xs, below, strict=True)]
        shapes.append(Area((*upper, *reversed(lower)), one.term, 1.0))
        below = above
    shapes += _legend(frame, [(one.term, one.title) for one in series])
    rows = -(-len(series) // _LEGEND_COLUMNS)
    return Drawing(
        _WIDTH, frame.bottom + 42 + rows * _LEGEND_STEP, tuple(shapes), "Live tensors over the run, by category."
    )


class ReadingsCurve(NamedTuple):
    """A named sequence of readings at `times` in seconds; None where nothing was read."""

    title: str
    times: tuple[float, ...]
    values: tuple[float | None, ...]


def readings_figure(
    title: str, unit: str, curves: Sequence[ReadingsCurve], most: float | None = None
) -> Drawing | None:
    """Return readings over time, a line for each curve; `most` is the upper end of the axis if it is fixed."""
    known = [value for curve in curves for value in curve.values if value is not None]
    seconds = max((curve.times[-1] for curve in curves if curve.times), default=0.0)
    if not known or seconds <= 0:
        return None
    unit_of_time, length = next((unit for unit in _TIME_UNITS if seconds >= 3 * unit[1]), _TIME_UNITS[-1])
    frame = _Frame(64, 12, _WIDTH - 12, 150, seconds / length, most or max(*known, 1e-9) * 1.05)
    shapes: list[Shape] = [*_axes(frame, unit_of_time, lambda value: f"{fmt.plain(value)}{fmt.THIN}{unit}")]
    for index, curve in enumerate(curves):
        color = f"series-{index % 8 + 1}"
        shapes += [Polyline(points, color, 1.5) for points in _unbroken_points(curve, frame, length)]
    rows = -(-len(curves) // _LEGEND_COLUMNS) if len(curves) > 1 else 0
    if rows:
        shapes += _legend(frame, [(f"series-{index % 8 + 1}", curve.title) for index, curve in enumerate(curves)])
    height = frame.bottom + 42 + rows * _LEGEND_STEP
    return Drawing(_WIDTH, height, tuple(shapes), f"{title} over time.")


def _unbroken_points(curve: ReadingsCurve, frame: _Frame, length: float) -> Iterator[tuple[tuple[float, float], ...]]:
    """Yield the stretches of a curve without missing readings; `length` is the unit of time in seconds."""
    stretch: list[tuple[float, float]] = []
    for time, value in zip(curve.times, curve.values, strict=True):
        if value is not None:
            stretch.append((frame.x(time / length), frame.y(min(value, frame.most_y))))
        elif stretch:
            yield tuple(stretch)
            stretch = []
    if stretch:
        yield tuple(stretch)


def _axes(frame: _Frame, unit: str, amount: Callable[[float], str]) -> Iterator[Shape]:
    """Yield both axes with their ticks; the horizontal one counts in `unit`."""
    for value in _ticks(frame.most_y):
        y = frame.y(value)
        yield Polyline(((frame.left, y), (frame.right, y)), "border", 1)
        yield DrawingLabel(frame.left - 6, y + 4, amount(value), "end", "muted", True)
    for value in _ticks(frame.most_x):
        yield DrawingLabel(frame.x(value), frame.bottom + 16, fmt.plain(value), "middle", "muted", True)
    yield DrawingLabel(frame.right, frame.bottom + 32, unit, "end", "muted", True)
    yield Polyline(((frame.left, frame.bottom), (frame.right, frame.bottom)), "outline", 1)


def _ticks(most: float) -> Iterator[float]:
    """Yield round values from zero to `most`, about four of them."""
    rough = most / _TICKS
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if factor * power >= rough)
    for index in range(floor(most / step + 1e-9) + 1):
        yield index * step


def _legend(frame: _Frame, entries: Sequence[tuple[str, str]], columns: int = _LEGEND_COLUMNS) -> Iterator[Shape]:
    """Yield the color and the title of each curve, in rows below the plot."""
    for index, (color, title) in enumerate(entries):
        row, column = divmod(index, columns)
        x = frame.left + column * (frame.right - frame.left) / columns
        y = frame.bottom + 52 + row * _LEGEND_STEP
        yield Rectangle(x, y - _SWATCH + 1, _SWATCH, _SWATCH, color)
        yield DrawingLabel(x + _SWATCH + 6, y, title, is_small=True)


def memory_blocks(view: MemoryView) -> Iterator[Block]:
    """Yield the blocks on a memory result; of a plan that its card cannot run, only the reason and the notes."""
    if not view.supported:
        yield Prose(view.answer)
        yield Bullets(view.notes)
        return
    yield from map(Prose, (view.answer, view.sharing, view.reason, view.certainty))
    yield memory_figure(view)
    yield _terms_table(view)
    yield _phases_table(view)
    yield _devices_table(view)


def _terms_table(view: MemoryView) -> ReportTable:
    columns = (
        ReportColumn("Part"),
        ReportColumn(view.unit, "right"),
        ReportColumn("Share", "right"),
        ReportColumn("Range", "right"),
        ReportColumn("Certainty"),
    )
    rows = [(row.title, row.amount, row.share_text, row.range_text, row.certainty) for row in view.terms]
    total = fmt.table_size(view.total_bytes, view.total_bytes)
    whole = ("Total", total, "", fmt.size_range(view.low_bytes, view.high_bytes), "")
    return ReportTable(columns, (*rows, whole), last_is_total=True)


def _phases_table(view: MemoryView) -> ReportTable:
    columns = (ReportColumn("Phase"), ReportColumn("Memory", "right"), ReportColumn(""), ReportColumn("Why"))
    rows = ((row.title, row.text, "peak" if row.is_peak else "", fmt.sentence(row.explanation)) for row in view.phases)
    return ReportTable(columns, tuple(rows))


def _devices_table(view: MemoryView) -> ReportTable:
    heads = ("GPUs", "Layers", "Needs, GiB", "Usable", "Free", "", "")
    rows = tuple(
        (row.card, row.layers, row.needs, row.usable, row.free, row.verdict, row.scarcity) for row in view.devices
    )
    return ReportTable(tuple(ReportColumn(head, "right" if head in heads[1:5] else "left") for head in heads), rows)
