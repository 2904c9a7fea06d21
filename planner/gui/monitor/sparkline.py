"""Sparklines of the cards' lines: the recent course of a quantity in the height of a line of text."""

from itertools import pairwise
from typing import Final, NamedTuple

from PySide6.QtCore import QPointF, QRect, Qt
from PySide6.QtGui import QPainter, QPolygonF

from planner.gui.monitor.plots.curves import SeriesKey, series_curve
from planner.gui.monitor.plots.specs import AxisRange
from planner.gui.plot.pens import cosmetic_pen
from planner.gui.theme import Theme
from planner.monitor.history import History
from planner.monitor.readings.inventory import Device

COLUMNS: Final = 40
"""Columns into which the displayed time span is reduced; a sparkline is drawn anew when a new column begins."""
METRICS: Final = ("utilization_fraction", "memory_used_bytes", "power_watts")
"""Quantities that have a sparkline, in the order of the columns."""


class Sparkline(NamedTuple):
    """Course of a quantity: the polylines between gaps, with points from (0, 0) to (1, 1)."""

    parts: tuple[QPolygonF, ...]

    def paint(self, painter: QPainter, area: QRect, theme: Theme, role: str, expected: float | None = None) -> None:
        """Paint the course in the color `role`; `expected` is the height at which the plan's prediction is marked."""
        painter.setPen(cosmetic_pen(theme.color("border"), 1))
        painter.drawLine(area.bottomLeft(), area.bottomRight())
        if expected is not None:
            painter.setPen(cosmetic_pen(theme.color("text"), 1, Qt.PenStyle.DashLine))
            height = area.bottom() - min(expected, 1.0) * area.height()
            painter.drawLine(QPointF(area.left(), height), QPointF(area.right(), height))
        painter.setPen(cosmetic_pen(theme.color(role), 1))
        painter.save()
        painter.translate(area.left(), area.bottom())
        painter.scale(area.width(), -area.height())
        for part in self.parts:
            painter.drawPolyline(part)
        painter.restore()


def sparklines(history: History, device: Device, span: AxisRange, until: float) -> tuple[Sparkline, ...]:
    """Return the sparkline of each of `METRICS` over `span`, drawn up to the time `until`.

    Utilization is relative to 100 %, memory to all of the card's, power to its limit.
    """
    limits = (
        1.0,
        device.fact("memory_total_bytes"),
        history.series(device.uuid, "power_limit_watts").last,
    )
    return tuple(
        _sparkline(history, (device.uuid, metric), limit, span, until)
        for metric, limit in zip(METRICS, limits, strict=True)
    )


def _sparkline(history: History, key: SeriesKey, limit: float | None, span: AxisRange, until: float) -> Sparkline:
    shown = AxisRange(span.low, min(span.high, until))
    curve = series_curve(history, key, "", 0, shown, COLUMNS) if shown.high > shown.low else None
    if curve is None or not len(curve.x):
        return Sparkline(())
    top = max(limit or 0.0, float(curve.y.max())) or 1.0
    x, y = (curve.x.clip(*shown) - span.low) / (span.high - span.low), curve.y / top
    points = [QPointF(*pair) for pair in zip(x.tolist(), y.tolist(), strict=True)]
    borders = pairwise((0, *curve.breaks, len(points)))
    return Sparkline(tuple(QPolygonF(points[first:stop]) for first, stop in borders if stop > first))
