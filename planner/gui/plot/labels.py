"""Names beside points: where they have room, found on a grid as thousands of points are in the way, and one item."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from planner.gui.theme import Theme

Floats = NDArray[np.float64]
_MOST: Final = 28
_CELL: Final = 5
# What a name keeps away from the centres of other points, and sideways from other names.
_CLEAR: Final = 4
_APART: Final = 8
# Where a name stands from its point, in its own sizes: right, left, above and below, and slanting.
_STRAIGHT: Final = ((0.0, -0.5, 1, 0), (-1.0, -0.5, -1, 0), (-0.5, -1.0, 0, -1), (-0.5, 0.0, 0, 1))
_SLANTING: Final = ((0.0, -1.0, 1, -1), (0.0, 0.0, 1, 1), (-1.0, -1.0, -1, -1), (-1.0, 0.0, -1, 1))
# A name that is both away and slanting would seem to be that of another point.
_PLACES: Final = tuple(
    (*side, gap) for gap, sides in ((3.0, _STRAIGHT + _SLANTING), (10.0, _STRAIGHT)) for side in sides
)


class Box(NamedTuple):
    """A rectangle in pixels, y downwards."""

    left: float
    top: float
    width: float
    height: float

    def grown(self, across: float, up: float) -> "Box":
        """Return the rectangle with so much more on either side, and above and below."""
        return Box(self.left - across, self.top - up, self.width + 2 * across, self.height + 2 * up)

    def meets(self, other: "Box") -> bool:
        """Return whether two rectangles have a pixel in common."""
        return (
            self.left < other.left + other.width
            and other.left < self.left + self.width
            and self.top < other.top + other.height
            and other.top < self.top + self.height
        )


class Label(NamedTuple):
    """A name of a size, for a point at `x` and `y` whose symbol reaches so far from there; all in pixels."""

    x: float
    y: float
    width: float
    height: float
    reach: float


class Crowd:
    """How many points lie within a rectangle, from sums over a grid."""

    def __init__(self, xs: Floats, ys: Floats, width: float, height: float) -> None:
        columns, rows = int(width // _CELL) + 1, int(height // _CELL) + 1
        inside = (xs >= 0) & (xs < width) & (ys >= 0) & (ys < height)
        cells = (ys[inside] // _CELL).astype(int) * columns + (xs[inside] // _CELL).astype(int)
        counts = np.bincount(cells, minlength=rows * columns).reshape(rows, columns)
        self._sums = np.zeros((rows + 1, columns + 1), dtype=int)
        self._sums[1:, 1:] = counts.cumsum(axis=0).cumsum(axis=1)

    def within(self, box: Box, label: Label | None = None) -> int:
        """Return how many points lie within `box` or less than a cell outside, without that of `label`."""
        rows, columns = self._sums.shape
        left, right = max(0, int(box.left // _CELL)), min(columns - 1, int((box.left + box.width) // _CELL) + 1)
        top, bottom = max(0, int(box.top // _CELL)), min(rows - 1, int((box.top + box.height) // _CELL) + 1)
        sums = self._sums
        found = int(sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left])
        own = label is not None and left <= label.x // _CELL < right and top <= label.y // _CELL < bottom
        return found - own


def place_names(labels: Sequence[Label], crowd: Crowd, area: tuple[float, float], needed: int) -> list[Box | None]:
    """Return where the names of `labels` stand, the first ones first; none where there is no room left.

    No two meet and each lies within `area`. They take the places that hide the fewest points, best such as none is even
    near; all but the first `needed` only such as hide none.
    """
    taken: list[Box] = []
    places: list[Box | None] = []
    for number, label in enumerate(labels):
        place = _best(label, crowd, area, taken, may_hide=number < needed)
        places.append(place)
        if place is not None:
            taken.append(place.grown(_APART, 0))
    return places


def _best(label: Label, crowd: Crowd, area: tuple[float, float], taken: Sequence[Box], *, may_hide: bool) -> Box | None:
    best: tuple[int, int, Box] | None = None
    for box in _beside(label):
        outside = box.left < 0 or box.top < 0 or box.left + box.width > area[0] or box.top + box.height > area[1]
        if outside or any(box.meets(other) for other in taken):
            continue
        near = crowd.within(box.grown(_CLEAR, _CLEAR), label)
        if near == 0:
            return box
        hidden = crowd.within(box, label)
        if (may_hide or hidden == 0) and (best is None or (hidden, near) < best[:2]):
            best = hidden, near, box
    return None if best is None else best[2]


def _beside(label: Label) -> Iterator[Box]:
    x, y, width, height, reach = label
    for across, down, right, below, gap in _PLACES:
        away = reach + gap
        yield Box(x + away * right + width * across, y + away * below + height * down, width, height)


class Named(NamedTuple):
    """A name beside the point at `x` and `y` of the axes, whose symbol reaches so many pixels from there."""

    name: str
    x: float
    y: float
    reach: float


class NameLayer(QGraphicsItem):
    """Names beside points, painted over a view box in its pixels: a text item each would take far longer."""

    def __init__(self, view_box: Any, theme: Theme) -> None:  # noqa: ANN401  # pyqtgraph is not typed
        super().__init__(view_box)
        self._view_box, self._theme = view_box, theme
        self._placed: list[tuple[str, Box]] = []
        self.setZValue(10)

    @property
    def boxes(self) -> tuple[QRect, ...]:
        """Return where names are written."""
        return tuple(QRectF(*box).toRect() for _, box in self._placed)

    @property
    def written(self) -> tuple[str, ...]:
        """Return the names that are written."""
        return tuple(name for name, _ in self._placed)

    def clear(self) -> None:
        """Write no names."""
        if self._placed:
            self._placed = []
            self.update()

    def place(self, wanted: Sequence[Named], xs: Floats, ys: Floats, needed: int) -> None:
        """Write the names that are `wanted`, the first ones first, as far as there is room between the points.

        All but the first `needed` are written only where they hide no point.
        """
        shown = wanted[:_MOST]
        area = self._view_box.rect()
        metrics = QFontMetricsF(self._theme.font("small"))
        labels = [self._label(one, metrics) for one in shown]
        boxes = place_names(labels, self._crowd(xs, ys), (area.width(), area.height()), needed)
        self._placed = [(one.name, box) for one, box in zip(shown, boxes, strict=True) if box is not None]
        self.update()

    def boundingRect(self) -> QRectF:
        """Return the whole of the view box."""
        area: QRectF = self._view_box.rect()
        return area

    def paint(self, painter: QPainter, _option: QStyleOptionGraphicsItem, _widget: QWidget | None = None) -> None:
        """Paint the names."""
        painter.setFont(self._theme.font("small"))
        painter.setPen(self._theme.color("text"))
        for name, box in self._placed:
            painter.drawText(QRectF(*box), int(Qt.AlignmentFlag.AlignCenter), name)

    def _label(self, named: Named, metrics: QFontMetricsF) -> Label:
        point = self._view_box.mapFromView(QPointF(named.x, named.y))
        width = metrics.horizontalAdvance(named.name) + 2
        return Label(point.x(), point.y(), width, metrics.height(), named.reach)

    def _crowd(self, xs: Floats, ys: Floats) -> Crowd:
        area = self._view_box.rect()
        (left, right), (bottom, top) = self._view_box.viewRange()
        across = (xs - left) / ((right - left) or 1) * area.width()
        down = (top - ys) / ((top - bottom) or 1) * area.height()
        return Crowd(across, down, area.width(), area.height())
