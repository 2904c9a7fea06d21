"""The scatter plot itself. Importing it imports pyqtgraph, which takes half a second."""

from collections.abc import Callable, Collection
from typing import Any, Final

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, QRect, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QColor, QFontMetrics, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QRubberBand, QWidget

from planner.gui.catalog.scatter.data import (
    MOST_CLASSES,
    ScatterData,
    axis_range,
    foremost,
    symbol_of,
    ticks,
)
from planner.gui.catalog.scatter.name_layer import Named, NameLayer
from planner.gui.catalog.scatter.point_layer import PointLayer
from planner.gui.catalog.settings import PlotChoice
from planner.gui.theme import Theme
from planner.gui.widgets.plot import GRID_ALPHA, Plot, blended, cosmetic_pen

_ALPHA: Final = 170
_OPAQUE: Final = 255
_NEAR_PIXELS: Final = 12
_DRAG_PIXELS: Final = 6
_RING: Final = 16
_PIXELS_A_MARK: Final = 60
_PIXELS_A_LINE: Final = 34
_NAMES_DELAY_MS: Final = 60
_MOVES: Final = {
    Qt.Key.Key_Right: (0, 1),
    Qt.Key.Key_Left: (0, -1),
    Qt.Key.Key_Up: (1, 1),
    Qt.Key.Key_Down: (1, -1),
}
_NONE: Final = np.zeros(0)
_EMPTY: Final = ScatterData((), _NONE, _NONE, _NONE, (), np.zeros(0, dtype=int), ("",), False, (), 0)


class ScatterPlot(Plot):
    """A point a row; those that nothing beats in both figures are joined.

    `hovered` carries the name of the row under the pointer or none, and where; `chosen` one that was clicked or come to
    by an arrow key; `boxed` the names within a box that was drawn; `used` says that Enter was pressed.
    """

    hovered = Signal(object, QPoint)
    chosen = Signal(str)
    boxed = Signal(object)
    used = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self._data, self._choice = _EMPTY, PlotChoice()
        self._current, self._selected = "", frozenset[str]()
        self._planned, self._here = "", frozenset[str]()
        self._name_of: Callable[[str], str] = str
        self._points = PointLayer()
        self._rings: Any = pg.ScatterPlotItem(size=_RING, symbol="o")
        self._front: Any = self._item.plot()
        for item in (self._points, self._rings):
            self._item.addItem(item, ignoreBounds=True)
        for name in ("bottom", "left"):
            self._item.getAxis(name).enableAutoSIPrefix(False)
        self._put_grid_behind()
        # Everything moves at once; to find out what did takes longer than to draw it.
        self._plot.setViewportUpdateMode(self._plot.ViewportUpdateMode.FullViewportUpdate)
        self._names = NameLayer(self._item.getViewBox(), theme)
        # Names are for the eye that lingers; the points answer a keystroke first.
        self._naming = QTimer(self, singleShot=True, interval=_NAMES_DELAY_MS)
        self._naming.timeout.connect(self.place_names)
        self._band = QRubberBand(QRubberBand.Shape.Rectangle, self._plot.viewport())
        self._pressed: QPoint | None = None
        self._plot.viewport().installEventFilter(self)
        self._take_keyboard()
        self._dress()

    @property
    def data(self) -> ScatterData:
        """Return what is drawn."""
        return self._data

    @property
    def name_boxes(self) -> tuple[QRect, ...]:
        """Return where names are written, in pixels."""
        return self._names.boxes

    @property
    def written(self) -> tuple[str, ...]:
        """Return the names that are written, in the order of their boxes."""
        return self._names.written

    def describe(self, titles: tuple[str, str], accessible: str) -> None:
        """Say what the axes are."""
        for name, title in zip(("bottom", "left"), titles, strict=True):
            axis = self._item.getAxis(name)
            if axis.labelText != title:
                axis.setLabel(title)
        self.setAccessibleName(accessible)
        self._plot.setAccessibleName(accessible)

    def draw(self, data: ScatterData, choice: PlotChoice, name_of: Callable[[str], str]) -> None:
        """Draw other points; `name_of` returns what to write beside one."""
        ordered_before = self._data.ordered
        self._data, self._choice, self._name_of = data, choice, name_of
        if data.ordered != ordered_before:
            self._dress()
        self._points.set_points(data)
        front = list(data.front) if choice.pareto else []
        self._front.setData(data.xs[front], data.ys[front])
        self._item.setXRange(*axis_range(data.xs, choice.log_x), padding=0)
        self._item.setYRange(*axis_range(data.ys, choice.log_y), padding=0)
        self._mark()
        self._place_ticks()

    def know(self, planned: str | None, here: Collection[str]) -> None:
        """Take note of the record that the plan uses, and of those of this machine, whose names are wanted."""
        self._planned, self._here = planned or "", frozenset(here)

    def mark(self, current: str | None, selected: Collection[str]) -> None:
        """Ring the record under the keyboard and those that are selected."""
        self._current, self._selected = current or "", frozenset(selected)
        self._mark()

    def class_color(self, place: int) -> QColor:
        """Return the colour of a class: one of a series, or for steps of a number from pale to strong."""
        return _class_color(self._theme, place, self._data.ordered, len(self._data.class_names))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Go to the next point along an axis with the arrow keys, and use a record with Enter."""
        move = _MOVES.get(Qt.Key(event.key()))
        if move is not None and self._data.ids:
            self._step(*move)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._current:
            self.used.emit()
        else:
            super().keyPressEvent(event)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the pointer: hovering, clicking, and drawing a box."""
        if isinstance(event, QMouseEvent):
            return self._on_mouse(event)
        if event.type() == QEvent.Type.Leave:
            self.hovered.emit(None, QPoint())
        return super().eventFilter(watched, event)

    def _on_mouse(self, event: QMouseEvent) -> bool:
        place = event.position().toPoint()
        if event.type() == QEvent.Type.MouseButtonPress and event.button() == Qt.MouseButton.LeftButton:
            self._pressed = place
            self.setFocus(Qt.FocusReason.MouseFocusReason)
        elif event.type() == QEvent.Type.MouseMove:
            self._on_moved(place)
        elif event.type() == QEvent.Type.MouseButtonRelease and self._pressed is not None:
            self._on_released(place)
        elif event.type() == QEvent.Type.MouseButtonDblClick and self._nearest(place):
            self.used.emit()
        return True

    def _on_moved(self, place: QPoint) -> None:
        if self._pressed is None:
            self.hovered.emit(self._nearest(place), place)
        elif (place - self._pressed).manhattanLength() > _DRAG_PIXELS:
            self._band.setGeometry(QRect(self._pressed, place).normalized())
            self._band.show()

    def _on_released(self, place: QPoint) -> None:
        pressed, self._pressed = self._pressed, None
        if self._band.isVisible() and pressed is not None:
            self._band.hide()
            self.boxed.emit(self.names_within(QRect(pressed, place).normalized()))
        elif name := self._nearest(place):
            self.chosen.emit(name)

    def names_within(self, area: QRect) -> tuple[str, ...]:
        """Return the names of the points within `area` of the viewport."""
        corners = [self._to_axes(corner) for corner in (area.bottomLeft(), area.topRight())]
        (left, right), (bottom, top) = sorted(one.x() for one in corners), sorted(one.y() for one in corners)
        data = self._data
        inside = (left <= data.xs) & (data.xs <= right) & (bottom <= data.ys) & (data.ys <= top)
        return tuple(data.ids[place] for place in np.flatnonzero(inside))

    def pixels_of(self, name: str) -> QPoint:
        """Return where a point lies in the viewport."""
        place = self._data.ids.index(name)
        point = self._item.getViewBox().mapViewToScene(
            QPointF(float(self._data.xs[place]), float(self._data.ys[place]))
        )
        return QPoint(round(point.x()), round(point.y()))

    def _to_axes(self, place: QPoint) -> QPointF:
        position: QPointF = self._item.getViewBox().mapSceneToView(QPointF(place))
        return position

    def _nearest(self, place: QPoint) -> str | None:
        """Return the name of the point under the pointer, within a few pixels."""
        if not self._data.ids or self._view_position(QPointF(place)) is None:
            return None
        at = self._to_axes(place)
        wide, high = self._item.getViewBox().viewPixelSize()
        far = ((self._data.xs - at.x()) / wide) ** 2 + ((self._data.ys - at.y()) / high) ** 2
        nearest = int(far.argmin())
        return self._data.ids[nearest] if far[nearest] <= _NEAR_PIXELS**2 else None

    def _step(self, axis: int, way: int) -> None:
        values = (self._data.xs, self._data.ys)[axis]
        order = np.argsort(values, kind="stable").tolist()
        if self._current in self._data.ids:
            place = order.index(self._data.ids.index(self._current)) + way
            chosen = order[min(max(place, 0), len(order) - 1)]
        else:
            chosen = order[0 if way > 0 else -1]
        self.chosen.emit(self._data.ids[chosen])

    def _mark(self) -> None:
        ringed = self._data.places_of(self._selected.union((self._current,)))
        self._rings.setData(self._data.xs[ringed], self._data.ys[ringed])
        self._names.clear()
        self._naming.start()

    def _place_ticks(self) -> None:
        across, up = self.width() // _PIXELS_A_MARK, self.height() // _PIXELS_A_LINE
        choice, data = self._choice, self._data
        bottom = ticks(axis_range(data.xs, choice.log_x), across, choice.log_x, choice.x == "year")
        left = ticks(axis_range(data.ys, choice.log_y), up, choice.log_y, choice.y == "year")
        self._item.getAxis("bottom").setTicks([bottom])
        self._item.getAxis("left").setTicks([left])
        self._make_room(left)
        self._names.clear()
        self._naming.start()

    def _make_room(self, marks: list[tuple[float, str]]) -> None:
        """Give the axis the width that its words take, at once: names are placed beside where the points are then."""
        axis, metrics = self._item.getAxis("left"), QFontMetrics(self._theme.font("small"))
        widest = max((metrics.horizontalAdvance(words) for _, words in marks), default=0)
        width = widest + metrics.height() + 2 * self._theme.spacing.tiny
        if axis.fixedWidth != width:
            axis.setWidth(width)

    @Slot()
    def place_names(self) -> None:
        """Write names where there is room: of what is chosen and in the plan, of this machine's, then of the best."""
        data, choice = self._data, self._choice
        needed = dict.fromkeys((*data.places_of((self._current, self._planned)), *data.places_of(self._selected)))
        wanted = (*needed, *data.places_of(self._here), *foremost(data, (choice.x, choice.y)))
        self._names.place([self._named(place) for place in dict.fromkeys(wanted)], data, len(needed))

    def _named(self, place: int) -> Named:
        data = self._data
        name = data.ids[place]
        size = _RING if name == self._current or name in self._selected else data.sizes[place]
        return Named(self._name_of(name), data.xs[place], data.ys[place], size / 2)

    def _dress(self) -> None:
        super()._dress()
        theme = self._theme
        grid = blended(theme.color("border"), theme.color("surface"), GRID_ALPHA / _OPAQUE)
        for name in ("bottom", "left"):
            axis = self._item.getAxis(name)
            axis.setTickPen(grid)
            axis.setStyle(tickAlpha=_OPAQUE)
        self._points.dress([self._style(place) for place in range(MOST_CLASSES)])
        self._rings.setBrush(None)
        self._rings.setPen(cosmetic_pen(theme.color("text"), 1.5))
        self._front.setPen(cosmetic_pen(theme.color("accent"), 1, Qt.PenStyle.DashLine))
        self._names.update()

    def _drawing(self) -> bytes:
        # A drawing has no picture of a ring to stamp from: there it is drawn as a shape.
        self._rings.opts["useCache"] = False
        drawing = super()._drawing()
        self._rings.opts["useCache"] = True
        return drawing

    def _style(self, place: int) -> tuple[str, QColor]:
        color = self.class_color(place)
        color.setAlpha(_ALPHA)
        return symbol_of(place, self._data.ordered), color

    def sizeHint(self) -> QSize:
        """Ask for nothing; the layout decides."""
        return QSize()


def _class_color(theme: Theme, place: int, ordered: bool, count: int) -> QColor:
    if not ordered:
        return theme.color(f"series-{place + 1}")
    if place == count - 1:
        return theme.color("muted")
    pale, strong = theme.color("border"), theme.color("accent")
    share = (place + 1) / max(1, count - 1)
    channels = zip((pale.red(), pale.green(), pale.blue()), (strong.red(), strong.green(), strong.blue()), strict=True)
    return QColor(*(round(low + (high - low) * share) for low, high in channels))
