"""A plot in the look of the window. Importing it imports pyqtgraph, which takes half a second."""

from pathlib import Path
from typing import Any, Final

import pyqtgraph as pg
from PySide6.QtCore import QBuffer, QPoint, QPointF, QRect, QSize, Qt, Slot
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QPixmap, QRegion, QResizeEvent
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from planner.gui.theme import Theme

GRID_ALPHA: Final = 40
"""How opaque a grid is, of 255."""
_BEHIND: Final = -200
_EXPORT_SCALE: Final = 2
_FOCUS_WIDTH: Final = 2


class Plot(QWidget):
    """Axes and a grid without the library's own menu, buttons and dragging.

    Subclasses add their items in `__init__` and then call `_dress`, which they extend with the colours of those items.
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None, axes: dict[str, Any] | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._plot: Any = pg.PlotWidget(axisItems=axes, enableMenu=False)
        self._item: Any = self._plot.getPlotItem()
        self._item.hideButtons()
        self._item.setMouseEnabled(x=False, y=False)
        self._item.disableAutoRange()
        self._item.showGrid(x=True, y=True)
        self._plot.setFrameShape(self._plot.Shape.NoFrame)
        for widget in (self._plot, self._plot.viewport()):
            widget.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        # The plot's own wish, 640 × 480, would push everything else out of view.
        self._plot.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Ignored)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._plot)
        theme.changed.connect(self._on_theme_changed)

    def picture(self) -> QPixmap:
        """Return the plot as it is shown, at twice its size."""
        # Without the mark of the keyboard, which lies around it.
        pixmap = QPixmap(self._plot.size() * _EXPORT_SCALE)
        pixmap.setDevicePixelRatio(_EXPORT_SCALE)
        self.render(pixmap, QPoint(), QRegion(self._plot.geometry()))
        return pixmap

    def save_picture(self, path: Path) -> None:
        """Write the plot as SVG if `path` ends so, else as the picture that its ending names.

        Raises:
            OSError: If the file cannot be written.
        """
        if path.suffix.lower() == ".svg":
            path.write_bytes(self._drawing())
        elif not self.picture().save(str(path)):
            raise OSError("the picture could not be written")

    def _drawing(self) -> bytes:
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
        """Frame the plot while it has the keyboard."""
        if self.hasFocus():
            painter = QPainter(self)
            painter.setPen(self._theme.color("focus"))
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Have as many marks on the axes as there is room for."""
        super().resizeEvent(event)
        self._place_ticks()

    def sizeHint(self) -> QSize:
        """Ask for nothing; the layout decides."""
        return QSize()

    def _take_keyboard(self) -> None:
        """Be reached by the tab key, with room around the plot to show it."""
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setContentsMargins(*(_FOCUS_WIDTH,) * 4)

    def _place_ticks(self) -> None:
        """Place the marks of the axes for the present size."""

    def _view_position(self, scene_position: QPointF) -> QPointF | None:
        """Return where a position of the scene lies on the axes; none if it is outside them."""
        box = self._item.getViewBox()
        if not box.sceneBoundingRect().contains(scene_position):
            return None
        position: QPointF = box.mapSceneToView(scene_position)
        return position

    def _put_grid_behind(self) -> None:
        """Draw the grid, which must be opaque then, under the items and not over them."""
        for name in ("left", "bottom"):
            self._item.getAxis(name).setZValue(_BEHIND)

    # Not overridden, so that Qt forgets it together with the plot.
    @Slot()
    def _on_theme_changed(self) -> None:
        self._dress()

    def _dress(self) -> None:
        theme = self._theme
        self._plot.setBackground(theme.color("surface"))
        for name in ("left", "bottom"):
            axis = self._item.getAxis(name)
            axis.setPen(theme.color("border"))
            axis.setTextPen(theme.color("muted"))
            axis.setStyle(tickFont=theme.font("small"), tickLength=0)
            axis.label.setFont(theme.font("small"))
            axis.setGrid(GRID_ALPHA)


def cosmetic_pen(color: QColor, width: float, style: Qt.PenStyle = Qt.PenStyle.SolidLine) -> QPen:
    """Return a pen whose width is in pixels, whatever the axes' scale."""
    pen = QPen(color, width, style)
    pen.setCosmetic(True)
    return pen


def blended(color: QColor, ground: QColor, share: float) -> QColor:
    """Return the opaque tone of a colour that covers `share` of a ground.

    A line whose colour shines through takes the painter many times as long: it has other threads mix it.
    """
    rest = 1 - share
    return QColor(
        round(share * color.red() + rest * ground.red()),
        round(share * color.green() + rest * ground.green()),
        round(share * color.blue() + rest * ground.blue()),
    )
