"""Logarithmic axes, and where labels beside points have room: arithmetic only."""

from collections.abc import Callable, Sequence
from math import ceil, floor, log10
from typing import Final

from PySide6.QtCore import QMarginsF, QPointF, QRectF, QSizeF

_FINE: Final = (1, 2, 5)
_COARSE: Final = (1,)
_POINT: Final = QMarginsF(7, 7, 7, 7)
_GAPS: Final = (8.0, 20.0, 40.0, 64.0, 92.0)
# Where a label stands from its point, in its own sizes: on the right, on the left, above, below, then slanting.
_SIDES: Final = (
    (0.0, -0.5),
    (-1.0, -0.5),
    (-0.5, -1.0),
    (-0.5, 0.0),
    (0.0, 0.0),
    (-1.0, 0.0),
    (0.0, -1.0),
    (-1.0, -1.0),
)
_DIRECTIONS: Final = ((1, 0), (-1, 0), (0, -1), (0, 1), (1, 1), (-1, 1), (1, -1), (-1, -1))


def log_ticks(low: float, high: float, most: int, words: Callable[[float], str]) -> list[tuple[float, str]]:
    """Return marks between two powers of ten: at 1, 2 and 5 where there is room for so many, else at 1."""
    steps = _FINE if (high - low) * len(_FINE) <= most else _COARSE
    marks = [
        (log10(step) + exponent, step * 10.0**exponent)
        for exponent in range(floor(low), ceil(high) + 1)
        for step in steps
    ]
    return [(place, words(value)) for place, value in marks if low <= place <= high]


def place_label(
    point: QPointF, size: QSizeF, area: QRectF, points: Sequence[QPointF], taken: Sequence[QRectF]
) -> QRectF:
    """Return where a label of `size` stands beside `point`, within `area`, away from what is `taken`.

    Of the places that there are it hides the fewest `points`. All are in pixels, with y downwards.
    """
    places = [
        place
        for gap in _GAPS
        for place in _beside(point, size, gap)
        if area.contains(place) and not any(place.intersects(other) for other in taken)
    ]
    hidden = [sum(place.marginsAdded(_POINT).contains(one) for one in points) for place in places]
    return places[hidden.index(min(hidden))] if places else QRectF(point, size)


def _beside(point: QPointF, size: QSizeF, gap: float) -> list[QRectF]:
    return [
        QRectF(QPointF(point.x() + gap * x + size.width() * left, point.y() + gap * y + size.height() * top), size)
        for (left, top), (x, y) in zip(_SIDES, _DIRECTIONS, strict=True)
    ]
