"""Names beside points, painted as one item: a text item each would take longer than all of the points."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from PySide6.QtCore import QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from planner.gui.catalog.scatter.data import ScatterData
from planner.gui.catalog.scatter.labels import Box, Crowd, Label, place_names
from planner.gui.theme import Theme

_MOST: Final = 28


class Named(NamedTuple):
    """A name beside the point at `x` and `y` of the axes, whose symbol reaches so many pixels from there."""

    name: str
    x: float
    y: float
    reach: float


class NameLayer(QGraphicsItem):
    """Lies over a view box and paints in its pixels."""

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

    def place(self, wanted: Sequence[Named], data: ScatterData, needed: int) -> None:
        """Write the names that are `wanted`, the first ones first, as far as there is room.

        All but the first `needed` are written only where they hide no point.
        """
        shown = wanted[:_MOST]
        area = self._view_box.rect()
        metrics = QFontMetricsF(self._theme.font("small"))
        labels = [self._label(one, metrics) for one in shown]
        boxes = place_names(labels, self._crowd(data), (area.width(), area.height()), needed)
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

    def _crowd(self, data: ScatterData) -> Crowd:
        area = self._view_box.rect()
        (left, right), (bottom, top) = self._view_box.viewRange()
        xs = (data.xs - left) / ((right - left) or 1) * area.width()
        ys = (top - data.ys) / ((top - bottom) or 1) * area.height()
        return Crowd(xs, ys, area.width(), area.height())
