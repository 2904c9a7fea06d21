"""The curves of a plot, one for each metric of each card or host, at the resolution of the display."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from planner.gui.monitor.plots.specs import AxisRange, PlotSpec
from planner.monitor.history import HOST, Gap, History, PlotColumns
from planner.monitor.readings.inventory import Device

Key = tuple[str, str]
"""A card's UUID or `HOST`, and a metric."""
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Owner:
    """A card in the plots, with its legend name, its short label and the number of its stroke."""

    uuid: str
    name: str
    label: str
    stroke: int


@dataclass(frozen=True, slots=True)
class Curve:
    """The points of a curve, and the indexes at which it is interrupted."""

    key: Key
    label: str
    stroke: int
    columns: PlotColumns
    x: Floats
    y: Floats
    breaks: tuple[int, ...]

    @property
    def is_condensed(self) -> bool:
        """Return whether the points are the minima and maxima of columns."""
        return len(self.x) > len(self.columns.times)


class LimitLine(NamedTuple):
    """A horizontal line of a plot with its title; `stroke` is that of its card, or None for all cards."""

    value: float
    title: str
    stroke: int | None = None


def plotted_owners(history: History) -> tuple[Owner, ...]:
    """Return the cards that have readings: present ones by number, then removed ones."""
    known = set(history.owners) - {HOST}
    devices = [device for device in history.inventory.devices if device.uuid in known]
    are_alike = len({device.name for device in devices}) == 1
    named = [(device.uuid, _title(device, are_alike), str(device.index)) for device in devices]
    removed = [
        (uuid, uuid, uuid[-4:]) for uuid in history.owners if uuid in known - {device.uuid for device in devices}
    ]
    return tuple(Owner(uuid, name, label, stroke) for stroke, (uuid, name, label) in enumerate([*named, *removed]))


def _title(device: Device, are_alike: bool) -> str:
    """Return the legend name of a card; the number suffices if all cards have the same name."""
    short = device.name.removeprefix("NVIDIA ")
    if device.mig_parent is not None:
        return f"Instance {device.index} · {short}"
    return f"Card {device.index}" if are_alike else f"{device.index} · {short}"


def curve_keys(spec: PlotSpec, owners: tuple[Owner, ...]) -> tuple[tuple[Key, str, int], ...]:
    """Return the keys of a plot's possible curves, each with its label and stroke."""
    if spec.is_host:
        return tuple(((HOST, name), spec.metric(name).title, stroke) for stroke, name in enumerate(spec.metrics))
    return tuple(((owner.uuid, name), owner.label, owner.stroke) for owner in owners for name in spec.metrics)


def is_known(history: History, spec: PlotSpec) -> bool:
    """Return whether there are readings for a plot."""
    return any(history.knows(metric, of_host=spec.is_host) for metric in spec.metrics)


def curve(history: History, key: Key, label: str, stroke: int, span: AxisRange, pixels: int) -> Curve:
    """Return the curve of a series over `span` with about one column per pixel."""
    series = history.series(*key)
    columns = series.between(span.low, span.high, pixels)
    points = 1 if columns.low is columns.high else 2
    breaks = tuple(points * place for place in _breaks(columns, series.gaps(span.low, span.high)))
    return Curve(key, label, stroke, columns, *_points(columns, points), breaks)


def value_range(curves: list[Curve]) -> AxisRange | None:
    """Return the lowest and the highest value of all curves, or None without points."""
    drawn = [curve.columns for curve in curves if len(curve.columns.times)]
    if not drawn:
        return None
    return AxisRange(min(float(each.low.min()) for each in drawn), max(float(each.high.max()) for each in drawn))


def _points(columns: PlotColumns, points: int) -> tuple[Floats, Floats]:
    if points == 1:
        return columns.times, columns.low
    # Up in one column and down in the next, so that no line runs from the top of one to the bottom of the next.
    heights = np.empty(2 * len(columns.times))
    heights[0::4], heights[1::4] = columns.low[0::2], columns.high[0::2]
    heights[2::4], heights[3::4] = columns.high[1::2], columns.low[1::2]
    return np.repeat(columns.times, 2), heights


def _breaks(columns: PlotColumns, gaps: tuple[Gap, ...]) -> list[int]:
    """Return the indexes of columns that begin after a gap; a gap within a column is too narrow to be visible."""
    if not gaps or not len(columns.times):
        return []
    after = np.searchsorted(columns.times, [gap.ended for gap in gaps], side="right") - 1
    visible = (after > 0) & (columns.times[after] > [gap.began for gap in gaps])
    return [int(place) for place in after[visible]]
