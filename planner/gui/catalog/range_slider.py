"""A slider with two handles: what lies between them stays."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from math import floor, log10
from typing import Final

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from planner.gui.theme import Theme

_RADIUS: Final = 6
_TRACK: Final = 2
_STEPS: Final = (1, 1.5, 2, 3, 4, 5, 6, 8)


class RangeSlider(QWidget):
    """Goes from stop to stop; `slid` carries `(low, high)`, none where a handle stands at its end.

    It is for the pointer only: the fields below it do the same for the keyboard.
    """

    slid = Signal(object)

    def __init__(self, theme: Theme, stops: Sequence[float]) -> None:
        super().__init__()
        self._theme, self._stops = theme, tuple(stops)
        self._places = [0, len(self._stops) - 1]
        self._dragged = 0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """Return the two bounds."""
        low, high = self._places
        last = len(self._stops) - 1
        return (self._stops[low] if low else None), (self._stops[high] if high < last else None)

    def set_bounds(self, low: float | None, high: float | None) -> None:
        """Move the handles to the stops just outside `low` and `high`."""
        last = len(self._stops) - 1
        self._places[0] = 0 if low is None else max(0, bisect_right(self._stops, low) - 1)
        self._places[1] = last if high is None else min(last, bisect_left(self._stops, high))
        self.update()

    def sizeHint(self) -> QSize:
        """Return the height of a handle; the width is the layout's."""
        return QSize(8 * _RADIUS, 2 * _RADIUS + 4)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Take the nearer handle."""
        x = event.position().x()
        low, high = (self._x(place) for place in self._places)
        self._dragged = 0 if x < (low + high) / 2 else 1
        self._drag(x)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Move the handle along, up to the other one."""
        self._drag(event.position().x())

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the track, the part between the handles, and the handles."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        low, high = (self._x(place) for place in self._places)
        middle = self.height() / 2
        for left, right, role in ((0.0, float(self.width()), "border"), (low, high, "accent")):
            painter.setBrush(self._theme.color(role))
            painter.drawRect(QRectF(left, middle - _TRACK / 2, right - left, _TRACK))
        painter.setPen(self._theme.color("accent"))
        painter.setBrush(self._theme.color("surface"))
        for x in (low, high):
            painter.drawEllipse(QPointF(x, middle), _RADIUS - 1, _RADIUS - 1)

    def _drag(self, x: float) -> None:
        last = len(self._stops) - 1
        wanted = round((x - _RADIUS) / max(1, self.width() - 2 * _RADIUS) * last)
        other = self._places[1 - self._dragged]
        least, most = (0, other) if self._dragged == 0 else (other, last)
        place = min(max(wanted, least), most)
        if place != self._places[self._dragged]:
            self._places[self._dragged] = place
            self.update()
            self.slid.emit(self.bounds)

    def _x(self, place: int) -> float:
        return _RADIUS + place / max(1, len(self._stops) - 1) * (self.width() - 2 * _RADIUS)


def round_stops(values: Sequence[float]) -> tuple[float, ...]:
    """Return round numbers from below the smallest of `values` to above the largest, evenly spaced by ratio."""
    known = [value for value in values if value > 0]
    if not known:
        return 0.0, 1.0
    low, high = floor(log10(min(known))), floor(log10(max(known)))
    rounds = [step * 10.0**exponent for exponent in range(low, high + 1) for step in _STEPS] + [10.0 ** (high + 1)]
    first = max(0, bisect_right(rounds, min(known)) - 1)
    return tuple(rounds[first : bisect_left(rounds, max(known)) + 1])
