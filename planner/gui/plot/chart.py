"""A chart in the look of the window. Importing it imports pyqtgraph, which takes half a second."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from pyqtgraph.GraphicsScene.mouseEvents import MouseClickEvent
from PySide6.QtCore import QBuffer, QEvent, QPoint, QPointF, QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import QBrush, QPainter, QPaintEvent, QPen, QPixmap, QRegion, QResizeEvent
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QLabel, QSizePolicy, QVBoxLayout, QWidget

from planner.gui.plot.pens import blended, cosmetic_pen, translucent
from planner.gui.plot.ticks import Ticks
from planner.gui.theme import Theme, mark

Data = Any
"""What a chart draws: each knows its own."""
Point = Any
"""What a chart reads out: each has points of its own."""
Item = Any
"""Something that pyqtgraph draws; it has no types."""
_AXES: Final = ("bottom", "left")
_OPAQUE: Final = 255
_GRID_ALPHA: Final = 40
_BEHIND: Final = -200
_EXPORT_SCALE: Final = 2
_FOCUS_WIDTH: Final = 2
_NEAR_PIXELS: Final = 12
_CARD_GAP: Final = 14


class Look(NamedTuple):
    """The colours of an item by their roles: of its line or its words, and of what it is filled with, if with any.

    `alpha` of 255 is how opaque the fill is, or where there is none the line.
    """

    line: str = ""
    width: float = 1
    style: Qt.PenStyle = Qt.PenStyle.SolidLine
    fill: str = ""
    alpha: int = _OPAQUE

    def pen(self, theme: Theme) -> QPen | None:
        """Return the pen of the line; none where there is none."""
        if not self.line:
            return None
        alpha = _OPAQUE if self.fill else self.alpha
        return cosmetic_pen(translucent(theme.color(self.line), alpha), self.width, self.style)

    def brush(self, theme: Theme) -> QBrush | None:
        """Return the brush of what is filled; none where nothing is."""
        return QBrush(translucent(theme.color(self.fill), self.alpha)) if self.fill else None


POINTER: Final = Look("muted", style=Qt.PenStyle.DotLine)
"""The line at what is under the pointer."""
LIMIT: Final = Look("text", style=Qt.PenStyle.DashDotLine)
"""The line that something must stay under."""


class Chart(QWidget):
    """Two axes and a grid, without the library's own menu, buttons and dragging.

    Subclasses add their items with a look each, say where the ticks stand, which of their points is near a place, and
    how it is marked. `hovered` carries the point under the pointer or none, `chosen` the one that was clicked. One that
    `is_dense` has so much to draw that its grid lies under all of it, and that it is painted as a whole.
    """

    hovered = Signal(object)
    chosen = Signal(object)
    PIXELS_PER_TICK: ClassVar[tuple[int, int]] = (64, 36)
    """The room of a tick along the x and the y axis."""

    def __init__(self, theme: Theme, name: str, axes: dict[str, Item] | None = None, *, is_dense: bool = False) -> None:
        super().__init__()
        self._theme, self._is_dense = theme, is_dense
        self._looks: dict[Item, Look] = {}
        self._plot: Any = pg.PlotWidget(axisItems=axes, enableMenu=False)
        self._item: Any = self._plot.getPlotItem()
        self._item.hideButtons()
        self._item.setMouseEnabled(x=False, y=False)
        self._item.disableAutoRange()
        self._item.showGrid(x=True, y=True)
        self._plot.setFrameShape(self._plot.Shape.NoFrame)
        self._plot.setAccessibleName(name)
        for widget in (self._plot, self._plot.viewport()):
            widget.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        # The plot's own wish, 640 × 480, would push everything else out of view.
        self._plot.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Ignored)
        if is_dense:
            self._prepare_for_many()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._plot)
        self.card = HoverCard(theme, self)
        self._plot.scene().sigMouseMoved.connect(self._on_moved)
        self._plot.scene().sigMouseClicked.connect(self._on_clicked)
        theme.changed.connect(self._on_theme_changed)
        self._dress_axes()

    def set_data(self, data: Data) -> None:
        """Draw something else."""
        raise NotImplementedError

    def picture(self) -> QPixmap:
        """Return the chart as it is shown, at twice its size."""
        # Without the mark of the keyboard, which lies around it.
        pixmap = QPixmap(self._plot.size() * _EXPORT_SCALE)
        pixmap.setDevicePixelRatio(_EXPORT_SCALE)
        self.render(pixmap, QPoint(), QRegion(self._plot.geometry()))
        return pixmap

    def drawing(self) -> bytes:
        """Return the chart as SVG."""
        buffer = QBuffer()
        generator = QSvgGenerator()
        generator.setOutputDevice(buffer)
        generator.setSize(self.size())
        # The axes are played from a recording, which is made larger or smaller between unlike resolutions.
        generator.setResolution(self.logicalDpiX())
        generator.setViewBox(QRect(0, 0, self.width(), self.height()))
        generator.setTitle(self._plot.accessibleName())
        painter = QPainter(generator)
        painter.fillRect(self.rect(), self._theme.color("surface"))
        self._plot.render(painter)
        painter.end()
        return bytes(buffer.data().data())

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Frame the chart while it has the keyboard."""
        if self.hasFocus():
            painter = QPainter(self)
            painter.setPen(self._theme.color("focus"))
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Have as many ticks on the axes as there is room for."""
        super().resizeEvent(event)
        self._place_ticks()

    def leaveEvent(self, event: QEvent) -> None:
        """Take the read-out back when the pointer has left."""
        super().leaveEvent(event)
        self._hover(None)

    def sizeHint(self) -> QSize:
        """Ask for nothing; the layout decides."""
        return QSize()

    def _point_at(self, _place: QPointF) -> Point | None:
        """Return what is to be read out at a place on the axes; none if nothing is near."""
        return None

    def _mark_hovered(self, point: Point) -> None:
        """Mark the point under the pointer, or none."""

    def _ticks(self, _across: int, _up: int) -> tuple[Ticks, Ticks] | None:
        """Return about so many ticks of the x and of the y axis; none before there is something to draw."""
        return None

    def _hover(self, point: Point | None) -> None:
        self._mark_hovered(point)
        self.hovered.emit(point)

    def _place_ticks(self) -> None:
        """Place the ticks of the axes for the present size."""
        across, up = self.PIXELS_PER_TICK
        ticks = self._ticks(self.width() // across, self.height() // up)
        for name, placed in zip(_AXES, ticks or (), strict=False):
            self._item.getAxis(name).setTicks([placed])

    def _set_ranges(self, across: tuple[float, float], up: tuple[float, float], padding: float = 0) -> None:
        """Show these ranges of the axes, with so much room beside the first and the last x."""
        self._item.setXRange(*across, padding=padding)
        self._item.setYRange(*up, padding=0)

    def _set_titles(self, bottom: str = "", left: str = "") -> None:
        """Name the axes; an empty title leaves the one that there is."""
        for name, title in zip(_AXES, (bottom, left), strict=True):
            axis = self._item.getAxis(name)
            if title and axis.labelText != title:
                axis.setLabel(title)

    def _add(self, item: Item, look: Look | None = None, z: float = 0) -> Item:
        """Add an item that does not move the axes, and return it; its colours follow the theme if it has a look."""
        self._item.addItem(item, ignoreBounds=True)
        item.setZValue(z)
        if look is not None:
            self._looks[item] = look
            self._dress_item(item, look)
        return item

    def _remove(self, items: Iterable[Item]) -> None:
        for item in items:
            self._item.removeItem(item)
            self._looks.pop(item, None)

    def _add_curve(self, look: Look) -> Item:
        """Add a curve."""
        return self._add(pg.PlotDataItem(antialias=True), look)

    def _add_band(self, look: Look) -> tuple[Item, Item]:
        """Add a filled band, and return its two edges, which are not drawn themselves."""
        edges = self._add(pg.PlotDataItem(), Look()), self._add(pg.PlotDataItem(), Look())
        self._add(pg.FillBetweenItem(*edges), look, z=-10)
        return edges

    def _dress_item(self, item: Item, look: Look) -> None:
        theme = self._theme
        if isinstance(item, pg.TextItem):
            item.setColor(theme.color(look.line))
            item.setFont(theme.font("small"))
            return
        if not isinstance(item, pg.FillBetweenItem):
            item.setPen(look.pen(theme))
        if look.fill or isinstance(item, pg.ScatterPlotItem):
            item.setBrush(look.brush(theme))

    def _view_position(self, scene_position: QPointF) -> QPointF | None:
        """Return where a position of the scene lies on the axes; none if it is outside them."""
        box = self._item.getViewBox()
        if not box.sceneBoundingRect().contains(scene_position):
            return None
        position: QPointF = box.mapSceneToView(scene_position)
        return position

    def _nearest(self, xs: NDArray[np.float64], ys: NDArray[np.float64], place: QPointF) -> int | None:
        """Return which of the points is nearest to a place on the axes; none if it is some pixels away."""
        if not len(xs):
            return None
        wide, high = self._item.getViewBox().viewPixelSize()
        distances = ((xs - place.x()) / wide) ** 2 + ((ys - place.y()) / high) ** 2
        nearest = int(distances.argmin())
        return nearest if distances[nearest] <= _NEAR_PIXELS**2 else None

    def _take_keyboard(self) -> None:
        """Be reached by the tab key, with room around the chart to show it."""
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setContentsMargins(*(_FOCUS_WIDTH,) * 4)

    def _prepare_for_many(self) -> None:
        """Draw the grid under the items, for which it must be opaque, and everything anew at each change."""
        for name in _AXES:
            self._item.getAxis(name).setZValue(_BEHIND)
        # Everything moves at once; to find out what did takes longer than to draw it.
        self._plot.setViewportUpdateMode(self._plot.ViewportUpdateMode.FullViewportUpdate)

    @Slot(object)
    def _on_moved(self, position: QPointF) -> None:
        place = self._view_position(position)
        self._hover(None if place is None else self._point_at(place))

    @Slot(object)
    def _on_clicked(self, event: MouseClickEvent) -> None:
        place = self._view_position(event.scenePos())
        point = None if place is None else self._point_at(place)
        if point is not None and event.button() == Qt.MouseButton.LeftButton:
            self.chosen.emit(point)

    # Not overridden, so that Qt forgets it together with the chart.
    @Slot()
    def _on_theme_changed(self) -> None:
        self._dress()

    def _dress(self) -> None:
        """Take on the colours and the fonts of the theme."""
        self._dress_axes()
        for item, look in self._looks.items():
            self._dress_item(item, look)

    def _dress_axes(self) -> None:
        theme = self._theme
        self._plot.setBackground(theme.color("surface"))
        for name in _AXES:
            axis = self._item.getAxis(name)
            axis.setPen(theme.color("border"))
            axis.setTextPen(theme.color("muted"))
            axis.setStyle(tickFont=theme.font("small"), tickLength=0)
            axis.label.setFont(theme.font("small"))
            axis.setGrid(_GRID_ALPHA)
            if self._is_dense:
                axis.setTickPen(blended(theme.color("border"), theme.color("surface"), _GRID_ALPHA / _OPAQUE))
                axis.setStyle(tickAlpha=_OPAQUE)


class HoverCard(QLabel):
    """What is said of a point, beside it and within the chart."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._around = parent
        mark(self, "hover-card")
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setContentsMargins(*(theme.spacing.small,) * 4)
        self.hide()

    def tell(self, lines: Sequence[str], place: QPoint) -> None:
        """Say `lines` beside `place`."""
        self.setText("\n".join(lines))
        self.adjustSize()
        room = self._around.size() - self.size()
        left = place.x() + _CARD_GAP if place.x() + _CARD_GAP <= room.width() else place.x() - _CARD_GAP - self.width()
        top = min(place.y() + _CARD_GAP, room.height())
        self.move(max(0, left), max(0, top))
        self.show()
        self.raise_()
