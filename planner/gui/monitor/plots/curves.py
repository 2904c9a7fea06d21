"""Curves of a plot: one for each metric of each card or of the host, reduced to the resolution of the display."""

from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from PySide6.QtGui import QPolygonF
from shiboken6 import VoidPtr

from planner.gui.monitor.plots.plot_list import AxisRange, PlotSpec
from planner.monitor.history import HOST, History
from planner.monitor.readings.inventory import Device
from planner.monitor.series import Gap, PlotColumns

SeriesKey = tuple[str, str]
"""A card's UUID or `HOST`, and a metric."""
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Owner:
    """A plotted card: its name in the legend, its short label and the number of its line style (`stroke`)."""

    uuid: str
    name: str
    label: str
    stroke: int


@dataclass(frozen=True, slots=True)
class Curve:
    """Points of one curve; `breaks` are the indexes of the points before which the curve is interrupted."""

    key: SeriesKey
    label: str
    stroke: int
    columns: PlotColumns
    x: Floats
    y: Floats
    breaks: tuple[int, ...]

    @property
    def is_condensed(self) -> bool:
        """Return whether the points are minima and maxima of pixel columns instead of single readings."""
        return len(self.x) > len(self.columns.times)


class LimitLine(NamedTuple):
    """A horizontal line at `value` with its title; `stroke` is the line style of its card, None for all cards."""

    value: float
    title: str
    stroke: int | None = None


def plotted_owners(history: History) -> tuple[Owner, ...]:
    """Return the cards that have readings: present cards by number, then removed cards."""
    known = set(history.owners) - {HOST}
    devices = [device for device in history.inventory.devices if device.uuid in known]
    have_same_name = len({device.name for device in devices}) == 1
    named = [(device.uuid, _legend_name(device, have_same_name), str(device.index)) for device in devices]
    removed = [
        (uuid, uuid, uuid[-4:]) for uuid in history.owners if uuid in known - {device.uuid for device in devices}
    ]
    return tuple(Owner(uuid, name, label, stroke) for stroke, (uuid, name, label) in enumerate([*named, *removed]))


def _legend_name(device: Device, have_same_name: bool) -> str:
    """Return the name of a card in the legend; only its number if all cards have the same name."""
    short = device.name.removeprefix("NVIDIA ")
    if device.mig_parent is not None:
        return f"Instance {device.index} · {short}"
    return f"GPU {device.index}" if have_same_name else f"{device.index} · {short}"


def possible_curves(spec: PlotSpec, owners: tuple[Owner, ...]) -> tuple[tuple[SeriesKey, str, int], ...]:
    """Return the series of a plot's possible curves, with the label and the stroke of each curve."""
    if spec.is_host:
        return tuple(((HOST, name), spec.metric(name).title, stroke) for stroke, name in enumerate(spec.metrics))
    return tuple(((owner.uuid, name), owner.label, owner.stroke) for owner in owners for name in spec.metrics)


def has_readings(history: History, spec: PlotSpec) -> bool:
    """Return whether the history has readings of any metric in the plot `spec`."""
    return any(history.has_readings_of(metric, of_host=spec.is_host) for metric in spec.metrics)


def series_curve(history: History, key: SeriesKey, label: str, stroke: int, span: AxisRange, pixels: int) -> Curve:
    """Return the curve of the series `key` over `span`, reduced to about one column per pixel."""
    series = history.series(*key)
    columns = series.between(span.low, span.high, pixels)
    points_per_column = 1 if columns.low is columns.high else 2
    breaks = tuple(points_per_column * index for index in _break_indices(columns, series.gaps(span.low, span.high)))
    return Curve(key, label, stroke, columns, *_curve_points(columns, points_per_column), breaks)


def polylines(curve: Curve, span: AxisRange, height: float = 1.0) -> tuple[QPolygonF, ...]:
    """Return a polyline for each part of a curve between gaps: x from 0 to 1 over `span`, y in units of `height`."""
    points = np.empty((len(curve.x), 2))
    points[:, 0] = (curve.x - span.low) / (span.high - span.low)
    points[:, 1] = curve.y / height
    parts = np.split(points, curve.breaks) if curve.breaks else [points]
    # A polyline of one point would not be drawn.
    return tuple(_polyline(part if len(part) > 1 else part.repeat(2, axis=0)) for part in parts if len(part))


def _polyline(points: Floats) -> QPolygonF:
    polyline = QPolygonF()
    polyline.resize(len(points))
    # An object for each point would take longer than all else. The binding's own annotations lack these arguments.
    memory = cast("Any", VoidPtr)(polyline.data(), points.nbytes, True)
    np.frombuffer(memory, dtype=float)[:] = points.ravel()
    return polyline


def curves_value_range(curves: list[Curve]) -> AxisRange | None:
    """Return the lowest and the highest value in all curves, None without points."""
    drawn = [curve.columns for curve in curves if len(curve.columns.times)]
    if not drawn:
        return None
    return AxisRange(
        min(float(columns.low.min()) for columns in drawn), max(float(columns.high.max()) for columns in drawn)
    )


def _curve_points(columns: PlotColumns, points_per_column: int) -> tuple[Floats, Floats]:
    if points_per_column == 1:
        return columns.times, columns.low
    # Up in one column and down in the next, so that no line runs from the top of one to the bottom of the next.
    heights = np.empty(2 * len(columns.times))
    heights[0::4], heights[1::4] = columns.low[0::2], columns.high[0::2]
    heights[2::4], heights[3::4] = columns.high[1::2], columns.low[1::2]
    return np.repeat(columns.times, 2), heights


def _break_indices(columns: PlotColumns, gaps: tuple[Gap, ...]) -> list[int]:
    """Return the indexes of the columns that begin after a gap; gaps within a column are invisible and ignored."""
    if not gaps or not len(columns.times):
        return []
    after = np.searchsorted(columns.times, [gap.ended for gap in gaps], side="right") - 1
    visible = (after > 0) & (columns.times[after] > [gap.began for gap in gaps])
    return [int(index) for index in after[visible]]
