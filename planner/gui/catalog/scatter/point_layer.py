"""All points of a scatter plot as one graphics item. Importing it imports pyqtgraph, which takes half a second."""

import math
from collections.abc import Sequence
from typing import Any, Final, cast

import numpy as np
import pyqtgraph as pg
from pyqtgraph.graphicsItems.ScatterPlotItem import drawSymbol, renderSymbol
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QPaintEngine, QPainter, QPen, QPixmap
from PySide6.QtWidgets import QWidget
from shiboken6 import Shiboken

from planner.gui.catalog.scatter.data import SIZES, Floats, Ints, ScatterData

# The edges of rendered symbols lie half a pixel outside of their size on either side.
_EDGES: Final = 1
_FRAGMENT_FIELDS: Final = 10


class PointLayer(pg.GraphicsObject):  # type: ignore[misc]  # the library has no annotations
    """Draws each point from a sprite sheet with one symbol per class and size.

    pyqtgraph's own item looks up the style of each point, which takes longer than drawing all of them. Points of a
    later class lie above those of an earlier one.
    """

    def __init__(self) -> None:
        super().__init__()
        self._styles: tuple[tuple[str, QColor], ...] = ()
        self._sheet = QPixmap()
        self._places = np.zeros((2, 0))
        self._cells: tuple[Ints, Ints] = (np.zeros(0, dtype=int), np.zeros(0, dtype=int))

    def set_styles(self, styles: Sequence[tuple[str, QColor]]) -> None:
        """Set the symbol and color of each class."""
        self._styles = tuple(styles)
        self._sheet = QPixmap()
        self.update()

    def set_points(self, data: ScatterData) -> None:
        """Replace the points."""
        order = np.argsort(data.classes, kind="stable")
        self._places = np.array((data.xs[order], data.ys[order]))
        self._cells = data.classes[order], np.searchsorted(SIZES, data.sizes[order])
        self.update()

    def viewRangeChanged(self) -> None:
        """Follow a change of the axes: the item covers the visible range."""
        self.prepareGeometryChange()

    def boundingRect(self) -> QRectF:
        """Return the visible range."""
        return QRectF(self.viewRect())

    def paint(self, painter: QPainter, _option: object, widget: QWidget | None) -> None:
        """Draw the points with sizes in pixels, independent of the scale of the axes."""
        count = self._places.shape[1]
        if not count:
            return
        scale = 1.0 if widget is None else widget.devicePixelRatioF()
        if self._sheet.isNull() or self._sheet.devicePixelRatio() != scale:
            self._sheet = self._sprite_sheet(scale)
        places = pg.functions.transformCoordinates(painter.transform(), self._places).T
        painter.resetTransform()
        if painter.paintEngine().type() == QPaintEngine.Type.SVG:
            self._draw_shapes(painter, places)
            return
        classes, steps = self._cells
        sides = _symbol_sides_pixels(scale)
        # The fields of QPainter::PixmapFragment: x, y, source rectangle, x and y scale, rotation and opacity.
        fragments = np.empty((count, _FRAGMENT_FIELDS))
        fragments[:, 0:2] = places
        fragments[:, 2] = (np.cumsum(sides) - sides)[steps]
        fragments[:, 3] = classes * sides[-1]
        fragments[:, 4] = fragments[:, 5] = sides[steps]
        fragments[:, 6:10] = 1 / scale, 1 / scale, 0, 1
        first = cast("QPainter.PixmapFragment", Shiboken.wrapInstance(fragments.ctypes.data, QPainter.PixmapFragment))
        painter.drawPixmapFragments(first, count, self._sheet)

    def _draw_shapes(self, painter: QPainter, places: Floats) -> None:
        """Draw each point as a vector shape, so that an SVG stays sharp at any size."""
        for (x, y), place, step in zip(places.tolist(), *(cells.tolist() for cells in self._cells), strict=True):
            symbol, color = self._styles[place]
            painter.save()
            painter.translate(x, y)
            drawSymbol(painter, symbol, SIZES[step], QPen(Qt.PenStyle.NoPen), QBrush(color))
            painter.restore()

    def _sprite_sheet(self, scale: float) -> QPixmap:
        """Return the sprite sheet with a row of symbols per color class, from small to large."""
        sides = _symbol_sides_pixels(scale)
        sheet = QPixmap(int(sides.sum()), int(sides[-1]) * len(self._styles))
        sheet.fill(Qt.GlobalColor.transparent)
        painter = QPainter(sheet)
        for row, (symbol, color) in enumerate(self._styles):
            left = 0
            for size, side in zip(SIZES, sides.tolist(), strict=True):
                image: Any = renderSymbol(symbol, size, QPen(Qt.PenStyle.NoPen), QBrush(color), dpr=scale)
                image.setDevicePixelRatio(1)
                painter.drawImage(left, row * int(sides[-1]), image)
                left += side
        painter.end()
        sheet.setDevicePixelRatio(scale)
        return sheet


def _symbol_sides_pixels(scale: float) -> Ints:
    """Return the side length in device pixels of the square that holds a symbol, for each size."""
    return np.array([math.ceil(scale * (size + _EDGES)) for size in SIZES])
