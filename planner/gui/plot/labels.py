"""Name labels beside the points of a scatter plot, placed where they hide no other point."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from planner.gui.plot.pens import translucent
from planner.gui.theme import Theme

Floats = NDArray[np.float64]
_MAX_NAMES: Final = 28
# Points so near to each other are one.
_SAME_PIXELS: Final = 1
_BEHIND_OPACITY: Final = 130
# Pixels between a label and the symbols of other points, and between labels side by side.
_POINT_CLEARANCE: Final = 4
_LABEL_SPACING: Final = 8
# Candidate offsets of a label from its point, in multiples of its own size: right, left, above, below, and diagonal.
_STRAIGHT: Final = ((0.0, -0.5, 1, 0), (-1.0, -0.5, -1, 0), (-0.5, -1.0, 0, -1), (-0.5, 0.0, 0, 1))
_SLANTING: Final = ((0.0, -1.0, 1, -1), (0.0, 0.0, 1, 1), (-1.0, -1.0, -1, -1), (-1.0, 0.0, -1, 1))
# A label that is both distant and diagonal would seem to belong to another point.
_CANDIDATE_OFFSETS: Final = tuple(
    (*side, gap) for gap, sides in ((3.0, _STRAIGHT + _SLANTING), (10.0, _STRAIGHT)) for side in sides
)


class Box(NamedTuple):
    """Rectangle of a name label in pixels; y increases downwards."""

    left: float
    top: float
    width: float
    height: float

    def enlarged(self, across: float, up: float) -> "Box":
        """Return the rectangle enlarged by `across` pixels on the left and right and by `up` pixels above and below."""
        return Box(self.left - across, self.top - up, self.width + 2 * across, self.height + 2 * up)

    def overlaps(self, other: "Box") -> bool:
        """Return whether the rectangles overlap."""
        return (
            self.left < other.left + other.width
            and other.left < self.left + self.width
            and self.top < other.top + other.height
            and other.top < self.top + self.height
        )


class Label(NamedTuple):
    """Size of a name label and position of its point, in pixels; `reach` is the radius of the point's symbol."""

    x: float
    y: float
    width: float
    height: float
    reach: float


class PointCounts:
    """Counts of the points whose symbols meet a rectangle; `reaches` are the radii of the symbols in pixels."""

    def __init__(self, xs: Floats, ys: Floats, reaches: Floats | float = 0.0) -> None:
        self._left, self._right = xs - reaches, xs + reaches
        self._top, self._bottom = ys - reaches, ys + reaches
        self._xs, self._ys = xs, ys

    def count_within(self, box: Box, label: Label | None = None) -> int:
        """Count the points whose symbols meet `box`, without those at the point of `label`."""
        meets = (self._right >= box.left) & (self._left <= box.left + box.width)
        meets &= (self._bottom >= box.top) & (self._top <= box.top + box.height)
        if label is not None:
            meets &= (abs(self._xs - label.x) > _SAME_PIXELS) | (abs(self._ys - label.y) > _SAME_PIXELS)
        return int(np.count_nonzero(meets))


def place_names(
    labels: Sequence[Label], point_counts: PointCounts, area: tuple[float, float], needed: int
) -> list[Box | None]:
    """Return the rectangle for each name label, placing earlier labels first; None where there is no room.

    Labels do not overlap and lie within `area`. Each label takes the box that hides the fewest points and, among
    equal boxes, has the fewest points nearby; all but the first `needed` labels take only boxes that hide no point.
    """
    occupied: list[Box] = []
    places: list[Box | None] = []
    for number, label in enumerate(labels):
        place = _box_with_fewest_points(label, point_counts, area, occupied, may_hide=number < needed)
        places.append(place)
        if place is not None:
            occupied.append(place.enlarged(_LABEL_SPACING, 0))
    return places


def _box_with_fewest_points(
    label: Label, point_counts: PointCounts, area: tuple[float, float], occupied: Sequence[Box], *, may_hide: bool
) -> Box | None:
    best: tuple[int, int, Box] | None = None
    for box in _boxes_around_point(label):
        outside = box.left < 0 or box.top < 0 or box.left + box.width > area[0] or box.top + box.height > area[1]
        if outside or any(box.overlaps(other) for other in occupied):
            continue
        near = point_counts.count_within(box.enlarged(_POINT_CLEARANCE, _POINT_CLEARANCE), label)
        if near == 0:
            return box
        hidden = point_counts.count_within(box, label)
        if (may_hide or hidden == 0) and (best is None or (hidden, near) < best[:2]):
            best = hidden, near, box
    return None if best is None else best[2]


def _boxes_around_point(label: Label) -> Iterator[Box]:
    x, y, width, height, reach = label
    for across, down, right, below, gap in _CANDIDATE_OFFSETS:
        away = reach + gap
        yield Box(x + away * right + width * across, y + away * below + height * down, width, height)


class PointName(NamedTuple):
    """Name of the point at `x` and `y` on the axes; the point's symbol has a radius of `reach` pixels."""

    name: str
    x: float
    y: float
    reach: float


class NameLayer(QGraphicsItem):
    """All name labels of a plot as one graphics item: one text item per name would take far longer."""

    def __init__(self, view_box: Any, theme: Theme) -> None:  # noqa: ANN401  # pyqtgraph is not typed
        super().__init__(view_box)
        self._view_box, self._theme = view_box, theme
        self._placed: list[tuple[str, Box]] = []
        self.setZValue(10)

    @property
    def boxes(self) -> tuple[QRect, ...]:
        """Return the rectangles of the placed name labels."""
        return tuple(QRectF(*box).toRect() for _, box in self._placed)

    @property
    def shown_names(self) -> tuple[str, ...]:
        """Return the names whose labels are shown."""
        return tuple(name for name, _ in self._placed)

    def clear(self) -> None:
        """Remove all name labels from the plot."""
        if self._placed:
            self._placed = []
            self.update()

    def place(
        self, point_names: Sequence[PointName], xs: Floats, ys: Floats, reaches: Floats | float, needed: int
    ) -> None:
        """Place as many labels of `point_names` as there is room for, earlier names first.

        All but the first `needed` names are shown only where they hide none of the points at `xs` and `ys`, whose
        symbols have radii of `reaches` pixels.
        """
        shown = point_names[:_MAX_NAMES]
        area = self._view_box.rect()
        metrics = QFontMetricsF(self._theme.font("small"))
        labels = [self._label_at_point(point_name, metrics) for point_name in shown]
        boxes = place_names(labels, self._counts_of_points(xs, ys, reaches), (area.width(), area.height()), needed)
        self._placed = [(point_name.name, box) for point_name, box in zip(shown, boxes, strict=True) if box is not None]
        self.update()

    def boundingRect(self) -> QRectF:
        """Return the whole area of the view box."""
        area: QRectF = self._view_box.rect()
        return area

    def paint(self, painter: QPainter, _option: QStyleOptionGraphicsItem, _widget: QWidget | None = None) -> None:
        """Paint the name labels."""
        painter.setFont(self._theme.font("small"))
        painter.setPen(self._theme.color("text"))
        behind = translucent(self._theme.color("surface"), _BEHIND_OPACITY)  # lines do not cross out a name
        for name, box in self._placed:
            painter.fillRect(QRectF(*box), behind)
            painter.drawText(QRectF(*box), int(Qt.AlignmentFlag.AlignCenter), name)

    def _label_at_point(self, point_name: PointName, metrics: QFontMetricsF) -> Label:
        point = self._view_box.mapFromView(QPointF(point_name.x, point_name.y))
        width = metrics.horizontalAdvance(point_name.name) + 2
        return Label(point.x(), point.y(), width, metrics.height(), point_name.reach)

    def _counts_of_points(self, xs: Floats, ys: Floats, reaches: Floats | float) -> PointCounts:
        area = self._view_box.rect()
        (left, right), (bottom, top) = self._view_box.viewRange()
        across = (xs - left) / ((right - left) or 1) * area.width()
        down = (top - ys) / ((top - bottom) or 1) * area.height()
        return PointCounts(across, down, reaches)
