"""Base classes of the window's charts, and the plotting library, which is imported when the first chart is made."""

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, NamedTuple, TypeVar

from PySide6.QtCore import QBuffer, QEvent, QPoint, QPointF, QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import QBrush, QPainter, QPaintEvent, QPen, QPixmap, QRegion, QResizeEvent, QShowEvent
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QLabel, QSizePolicy, QVBoxLayout, QWidget

from planner.gui.plot.pens import blended, cosmetic_pen, translucent
from planner.gui.plot.ticks import Ticks
from planner.gui.theme import Theme, set_style_role

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pyqtgraph.GraphicsScene.mouseEvents import MouseClickEvent

Point = Any
"""Type of a chart's points, which differs between subclasses."""
Item = Any
"""A graphics item; pyqtgraph has no type annotations."""
_AXES: Final = ("bottom", "left")
_OPAQUE_ALPHA: Final = 255
_GRID_ALPHA: Final = 40
_GRID_Z: Final = -200
_EXPORT_SCALE: Final = 2
_FOCUS_WIDTH: Final = 2
_NEAR_PIXELS: Final = 12
_CARD_GAP: Final = 14


class _Pyqtgraph:
    """The plotting library, imported on first use: it takes half a second, which the start of the window spares."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # the library has no type annotations
        return getattr(import_module("pyqtgraph"), name)


pg: Final = _Pyqtgraph()


class ItemStyle(NamedTuple):
    """Style of a chart item: theme roles of its line (or text) and of its fill, for a text the ground behind it.

    `alpha`, from 0 to 255, is the opacity of the fill, or of the line if there is no fill.
    """

    line: str = ""
    width: float = 1
    style: Qt.PenStyle = Qt.PenStyle.SolidLine
    fill: str = ""
    alpha: int = _OPAQUE_ALPHA

    def pen(self, theme: Theme) -> QPen | None:
        """Return the pen of the line, or None without a line."""
        if not self.line:
            return None
        alpha = _OPAQUE_ALPHA if self.fill else self.alpha
        return cosmetic_pen(translucent(theme.color(self.line), alpha), self.width, self.style)

    def brush(self, theme: Theme) -> QBrush | None:
        """Return the brush of the fill, or None without a fill."""
        return QBrush(translucent(theme.color(self.fill), self.alpha)) if self.fill else None


POINTER: Final = ItemStyle("muted", style=Qt.PenStyle.DotLine)
"""Style of the line through the hovered point."""
LIMIT: Final = ItemStyle("text", style=Qt.PenStyle.DashDotLine)
"""Style of a limit line, such as the memory of the card."""
LINE_TITLE: Final = ItemStyle("text", fill="surface", alpha=200)
"""Style of a text that other lines cross, which its ground keeps readable."""


class Chart(QWidget):
    """Chart with two axes and a grid, without pyqtgraph's own menu, buttons and dragging.

    Subclasses add their items, place the ticks, find the point near a position and highlight it. `hovered` carries the
    point under the pointer or None, `chosen` the clicked point. A chart that `is_dense` draws its grid below
    all items and repaints as a whole.
    """

    hovered = Signal(object)
    chosen = Signal(object)
    PIXELS_PER_TICK: ClassVar[tuple[int, int]] = (64, 36)
    """Average distance between ticks in pixels, along the x and the y axis."""

    def __init__(self, theme: Theme, name: str, axes: dict[str, Item] | None = None, *, is_dense: bool = False) -> None:
        super().__init__()
        self._theme, self._is_dense = theme, is_dense
        self._is_outdated = False
        self._looks: dict[Item, ItemStyle] = {}
        self._plot: Any = pg.PlotWidget(axisItems=axes, enableMenu=False)
        self._item: Any = self._plot.getPlotItem()
        self._item.hideButtons()
        self._item.setMouseEnabled(x=False, y=False)
        self._item.disableAutoRange()
        self._item.showGrid(x=True, y=True)
        for name in _AXES:
            self._item.getAxis(name).enableAutoSIPrefix(False)  # the ticks have units of their own
        self._plot.setFrameShape(self._plot.Shape.NoFrame)
        self._plot.setAccessibleName(name)
        for widget in (self._plot, self._plot.viewport()):
            widget.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        # pyqtgraph's size hint, 640 × 480, would push everything else out of view.
        self._plot.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Ignored)
        if is_dense:
            self._prepare_for_many_items()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._plot)
        self.card = HoverCard(theme, self)
        self._plot.scene().sigMouseMoved.connect(self._on_pointer_moved)
        self._plot.scene().sigMouseClicked.connect(self._on_plot_clicked)
        theme.changed.connect(self._on_theme_changed)
        self._apply_theme_to_axes()

    def picture(self) -> QPixmap:
        """Return a picture of the chart at twice its size."""
        # Only the plot: the focus frame lies around it.
        pixmap = QPixmap(self._plot.size() * _EXPORT_SCALE)
        pixmap.setDevicePixelRatio(_EXPORT_SCALE)
        self.render(pixmap, QPoint(), QRegion(self._plot.geometry()))
        return pixmap

    def drawing(self) -> bytes:
        """Return the chart as the bytes of an SVG file."""
        buffer = QBuffer()
        generator = QSvgGenerator()
        generator.setOutputDevice(buffer)
        generator.setSize(self.size())
        # The axes are replayed from a QPicture, which Qt rescales if the resolutions differ.
        generator.setResolution(self.logicalDpiX())
        generator.setViewBox(QRect(0, 0, self.width(), self.height()))
        generator.setTitle(self._plot.accessibleName())
        painter = QPainter(generator)
        painter.fillRect(self.rect(), self._theme.color("surface"))
        self._plot.render(painter)
        painter.end()
        return bytes(buffer.data().data())

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Frame the chart while it has the keyboard focus."""
        if self.hasFocus():
            painter = QPainter(self)
            painter.setPen(self._theme.color("focus"))
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))

    def showEvent(self, event: QShowEvent) -> None:
        """Apply the theme that was switched to while the chart was hidden."""
        super().showEvent(event)
        if self._is_outdated:
            self._is_outdated = False
            self._apply_theme()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Place as many ticks on the axes as fit the new size."""
        super().resizeEvent(event)
        self._place_ticks()

    def leaveEvent(self, event: QEvent) -> None:
        """Clear the read-out when the pointer leaves."""
        super().leaveEvent(event)
        self._show_hovered(None)

    def sizeHint(self) -> QSize:
        """Return no preferred size; the layout decides the size."""
        return QSize()

    def _point_at(self, _place: QPointF) -> Point | None:
        """Return the chart point near a position in axis coordinates, or None."""
        return None

    def _mark_hovered(self, point: Point) -> None:
        """Highlight `point` in the chart; None removes the highlight."""

    def _axis_ticks(self, _x_tick_count: int, _y_tick_count: int) -> tuple[Ticks, Ticks] | None:
        """Return ticks for the x and the y axis, about as many as requested, or None while there is no data."""
        return None

    def _show_hovered(self, point: Point | None) -> None:
        self._mark_hovered(point)
        self.hovered.emit(point)

    def _place_ticks(self) -> None:
        """Place the ticks for the current size."""
        across, up = self.PIXELS_PER_TICK
        ticks = self._axis_ticks(self.width() // across, self.height() // up)
        for name, placed in zip(_AXES, ticks or (), strict=False):
            self._item.getAxis(name).setTicks([placed])

    def _set_axis_ranges(self, x_range: tuple[float, float], y_range: tuple[float, float], padding: float = 0) -> None:
        """Set the ranges of the x and the y axis; `padding` is a fraction of the x range."""
        self._item.setXRange(*x_range, padding=padding)
        self._item.setYRange(*y_range, padding=0)

    def _set_axis_titles(self, bottom: str = "", left: str = "") -> None:
        """Set the titles of the axes; an empty title leaves the current title unchanged."""
        for name, title in zip(_AXES, (bottom, left), strict=True):
            axis = self._item.getAxis(name)
            if title and axis.labelText != title:
                axis.setLabel(title)

    def _add_item(self, item: Item, item_style: ItemStyle | None = None, z: float = 0) -> Item:
        """Add an item without changing the axis ranges; with a style, its colors follow the theme."""
        self._item.addItem(item, ignoreBounds=True)
        item.setZValue(z)
        if item_style is not None:
            self._looks[item] = item_style
            self._apply_item_style(item, item_style)
        return item

    def _remove_items(self, items: Iterable[Item]) -> None:
        for item in items:
            self._item.removeItem(item)
            self._looks.pop(item, None)

    def _add_curve(self, item_style: ItemStyle) -> Item:
        """Add and return a curve."""
        return self._add_item(pg.PlotDataItem(antialias=True), item_style)

    def _add_band(self, item_style: ItemStyle) -> tuple[Item, Item]:
        """Add a filled band between two curves, and return the two curves, which are not drawn."""
        edges = self._add_item(pg.PlotCurveItem(), ItemStyle()), self._add_item(pg.PlotCurveItem(), ItemStyle())
        self._add_item(pg.FillBetweenItem(*edges), item_style, z=-10)
        return edges

    def _apply_item_style(self, item: Item, item_style: ItemStyle) -> None:
        theme = self._theme
        if isinstance(item, pg.TextItem):
            item.setColor(theme.color(item_style.line))
            item.setFont(theme.font("small"))
            item.fill = item_style.brush(theme) if item_style.fill else pg.mkBrush(None)
            item.update()
            return
        if not isinstance(item, pg.FillBetweenItem):
            item.setPen(item_style.pen(theme))
        if item_style.fill or isinstance(item, pg.ScatterPlotItem):
            item.setBrush(item_style.brush(theme))

    def _view_position(self, scene_position: QPointF) -> QPointF | None:
        """Convert a scene position to axis coordinates; None outside the axes."""
        box = self._item.getViewBox()
        if not box.sceneBoundingRect().contains(scene_position):
            return None
        position: QPointF = box.mapSceneToView(scene_position)
        return position

    def _nearest_index(self, xs: "NDArray[np.float64]", ys: "NDArray[np.float64]", place: QPointF) -> int | None:
        """Return the index of the point nearest to `place` on the axes, or None if none is within a few pixels."""
        if not len(xs):
            return None
        wide, high = self._item.getViewBox().viewPixelSize()
        distances = ((xs - place.x()) / wide) ** 2 + ((ys - place.y()) / high) ** 2
        nearest = int(distances.argmin())
        return nearest if distances[nearest] <= _NEAR_PIXELS**2 else None

    def _accept_keyboard_focus(self) -> None:
        """Accept the keyboard focus, with a margin for the focus frame."""
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setContentsMargins(*(_FOCUS_WIDTH,) * 4)

    def _prepare_for_many_items(self) -> None:
        """Speed up a chart with many items: draw the grid below, and repaint the whole viewport at each change."""
        for name in _AXES:
            self._item.getAxis(name).setZValue(_GRID_Z)
        # Everything moves at once: finding the changed regions takes longer than repainting.
        self._plot.setViewportUpdateMode(self._plot.ViewportUpdateMode.FullViewportUpdate)

    @Slot(object)
    def _on_pointer_moved(self, position: QPointF) -> None:
        place = self._view_position(position)
        self._show_hovered(None if place is None else self._point_at(place))

    @Slot(object)
    def _on_plot_clicked(self, event: "MouseClickEvent") -> None:
        place = self._view_position(event.scenePos())
        point = None if place is None else self._point_at(place)
        if point is not None and event.button() == Qt.MouseButton.LeftButton:
            self.chosen.emit(point)

    # A slot of this class, not an overridable method, so that Qt disconnects it when the chart is destroyed.
    @Slot()
    def _on_theme_changed(self) -> None:
        """Apply the new theme; a hidden chart does so when it is shown, since all charts at once take long."""
        self._is_outdated = not self.isVisible()
        if not self._is_outdated:
            self._apply_theme()

    def _apply_theme(self) -> None:
        """Apply the colors and fonts of the theme."""
        self._apply_theme_to_axes()
        for item, item_style in self._looks.items():
            self._apply_item_style(item, item_style)

    def _apply_theme_to_axes(self) -> None:
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
                axis.setTickPen(blended(theme.color("border"), theme.color("surface"), _GRID_ALPHA / _OPAQUE_ALPHA))
                axis.setStyle(tickAlpha=_OPAQUE_ALPHA)


Data = TypeVar("Data")


class DataChart(Chart, Generic[Data]):
    """Chart that draws one immutable `data` object, with a line of style `pointer` through the hovered point.

    Series whose keys a legend hides are not drawn.
    """

    def __init__(self, theme: Theme, name: str, pointer: ItemStyle = POINTER, pointer_z: float = 1) -> None:
        super().__init__(theme, name)
        self._data: Data | None = None
        self._hidden: frozenset[Any] = frozenset()
        self._pointer = self._add_item(pg.InfiniteLine(angle=90), pointer, pointer_z)
        self._pointer.hide()

    def set_data(self, data: Data) -> None:
        """Draw `data` in place of the previous data."""
        self._data = data
        self._draw(data)
        self._place_ticks()
        self._show_hovered(None)

    @Slot(object)
    def hide_series(self, hidden: frozenset[Any]) -> None:
        """Draw all series but those whose keys are in `hidden`."""
        self._hidden = hidden
        if self._data is not None:
            self.set_data(self._data)

    def _draw(self, data: Data) -> None:
        """Draw `data`, and set the ranges of the axes."""
        raise NotImplementedError

    def _ticks_of(self, data: Data, x_tick_count: int, y_tick_count: int) -> tuple[Ticks, Ticks] | None:
        """Return ticks for the x and the y axis, about as many as requested, or None without points."""
        raise NotImplementedError

    def _nearest_point(self, data: Data, place: QPointF) -> Point | None:
        """Return the point near a position in axis coordinates, or None."""
        raise NotImplementedError

    def _x_of(self, data: Data, point: Point) -> float:
        """Return the position of a point on the x axis."""
        raise NotImplementedError

    def _axis_ticks(self, x_tick_count: int, y_tick_count: int) -> tuple[Ticks, Ticks] | None:
        return None if self._data is None else self._ticks_of(self._data, x_tick_count, y_tick_count)

    def _point_at(self, place: QPointF) -> Point | None:
        return None if self._data is None else self._nearest_point(self._data, place)

    def _mark_hovered(self, point: Point | None) -> None:
        self._pointer.setVisible(point is not None)
        if point is not None and self._data is not None:
            self._pointer.setPos(self._x_of(self._data, point))


class HoverCard(QLabel):
    """Text box beside the hovered point of a chart, kept within the chart."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._around = parent
        set_style_role(self, "hover-card")
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setContentsMargins(*(theme.spacing.small,) * 4)
        self.hide()

    def show_lines(self, lines: Sequence[str], place: QPoint) -> None:
        """Show `lines` beside `place`."""
        self.setText("\n".join(lines))
        self.adjustSize()
        room = self._around.size() - self.size()
        left = place.x() + _CARD_GAP if place.x() + _CARD_GAP <= room.width() else place.x() - _CARD_GAP - self.width()
        top = min(place.y() + _CARD_GAP, room.height())
        self.move(max(0, left), max(0, top))
        self.show()
        self.raise_()
