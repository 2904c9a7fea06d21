"""Plot of a metric over time; importing this module imports pyqtgraph, which takes half a second."""

from collections.abc import Callable
from typing import Final, NamedTuple

import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, Qt, Slot
from PySide6.QtGui import QBrush, QColor, QFontMetrics, QPainter, QPen, QPolygonF, QStaticText

from planner.gui.monitor.plots.curves import Curve, LimitLine, polylines
from planner.gui.monitor.plots.plot_list import AxisRange, metric_ticks
from planner.gui.monitor.plots.time_view import Gestures, TimeSpanView, axis_width, time_ticks
from planner.gui.plot.chart import Chart, Item, ItemStyle
from planner.gui.plot.pens import blended, cosmetic_pen, series_pen
from planner.gui.plot.ticks import Ticks
from planner.gui.theme import Theme
from planner.monitor.history import TimelineMark
from planner.monitor.readings.metrics import Unit

_LABEL_GAP = 2.0
# A time axis never stops producing new labels, so the cache is emptied when it is full.
_MAX_CACHED = 64


class PlainAxis(pg.AxisItem):  # type: ignore[misc]  # the library has no annotations
    """Axis that draws the ticks set with `set_ticks`, each with a grid line through the plot.

    pyqtgraph's own axis places the ticks itself and caches their drawing as a QPicture. A time axis is never drawn
    twice with the same ticks, and replaying the picture takes longer than everything else in the plot.
    """

    def __init__(self, orientation: str) -> None:
        super().__init__(orientation)
        self.enableAutoSIPrefix(False)  # of a title that is never shown, but laid out anew after each resize
        self._placed: Ticks = []
        self._labels: dict[str, tuple[QStaticText, float, float]] = {}
        self._grid_color = QColor()

    def set_ticks(self, ticks: Ticks) -> None:
        """Replace the ticks."""
        if ticks != self._placed:
            self._placed = ticks
            self.update()

    def set_grid_color(self, grid_color: QColor) -> None:
        """Set the color of the grid lines and discard the cached labels, whose font may have changed."""
        self._grid_color = grid_color
        self._labels.clear()
        self.update()

    def paint(self, painter: QPainter, _option: object, _widget: object) -> None:
        """Draw the axis line, the grid lines and the tick labels."""
        bounds = self.mapRectFromParent(self.geometry())
        plot = self.linkedView().mapRectToItem(self, self.linkedView().boundingRect())
        first, last = self.range
        painter.setFont(self.style["tickFont"])
        # Filled opaque rectangles: stroked or translucent lines take many times longer.
        color, axis = self._grid_color, self.pen().color()
        shares = [(value - first) / (last - first) for value, _ in self._placed]
        if self.orientation == "bottom":
            positions = [bounds.left() + share * bounds.width() for share in shares]
            painter.fillRect(round(bounds.left()), round(bounds.top()), round(bounds.width()), 1, axis)
            top, height = round(plot.top()), round(plot.height())
            for x in positions:
                painter.fillRect(round(x), top, 1, height, color)
        else:
            positions = [bounds.bottom() - share * bounds.height() for share in shares]
            painter.fillRect(round(bounds.right()) - 1, round(bounds.top()), 1, round(bounds.height()), axis)
            left, width = round(plot.left()), round(plot.width())
            for y in positions:
                painter.fillRect(left, round(y), width, 1, color)
        self._paint_tick_labels(painter, positions, bounds)

    def _paint_tick_labels(self, painter: QPainter, positions: list[float], bounds: QRectF) -> None:
        painter.setPen(self.textPen())
        for place, (_, text) in zip(positions, self._placed, strict=True):
            label, width, height = self._prepared_label(painter, text)
            if self.orientation == "bottom":
                left = min(max(place - width / 2, bounds.left() + _LABEL_GAP), bounds.right() - width - _LABEL_GAP)
                top = bounds.center().y() - height / 2
            else:
                left = bounds.right() - width - 2 * _LABEL_GAP
                top = min(max(place - height / 2, bounds.top()), bounds.bottom() - height)
            painter.drawStaticText(QPointF(left, top), label)

    def _prepared_label(self, painter: QPainter, text: str) -> tuple[QStaticText, float, float]:
        """Return a label prepared for drawing, with its width and height."""
        known = self._labels.get(text)
        if known is None:
            if len(self._labels) >= _MAX_CACHED:
                self._labels.clear()
            label = QStaticText(text)
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.prepare(painter.transform(), painter.font())
            known = self._labels[text] = label, label.size().width(), label.size().height()
        return known


_PIXELS_PER_TICK: Final = 26
_COLUMNS_PER_PIXEL: Final = 0.5
_GRID_SHARE: Final = 0.4
_TITLE_OPACITY: Final = 0.85
_MOST_TITLE_SHARE: Final = 0.3


class MetricPlot(Chart):
    """Plot of a metric over the time span of `view`: curves, limit lines, marks and the shared cursor.

    The time axis always runs from 0 to 1: moving it would take the library longer than drawing the curves.
    """

    def __init__(self, theme: Theme, title: str, unit: Unit, view: TimeSpanView) -> None:
        axes = {name: PlainAxis(name) for name in ("left", "bottom")}
        super().__init__(theme, f"{title} over time; its table has the same figures", axes, is_dense=True)
        self._unit, self._view = unit, view
        self._limits, self._curves = self._add_item(CurvesItem()), self._add_item(CurvesItem())
        self._drawn_curves: tuple[list[Curve], list[Curve]] = ([], [])
        self._lines: list[tuple[Item, Item, LimitLine]] = []
        self._marks = self._add_item(MarksItem())
        self._value_range = AxisRange(0.0, 0.0)
        self._wall_of: Callable[[float], float] = float
        self._cursor = self._add_item(pg.InfiniteLine(angle=90), ItemStyle("muted"), z=20)
        self._cursor.hide()
        self._pens: dict[tuple[int, bool], QPen] = {}
        self._placed: object = None
        self.gestures = Gestures(self._plot.viewport(), view, self.time_at)
        view.cursor_moved.connect(self._show_cursor)
        self._apply_theme()

    @property
    def columns(self) -> int:
        """Return the number of columns into which a curve's readings are reduced: one for two pixels."""
        return max(1, int(self._item.getViewBox().width() * _COLUMNS_PER_PIXEL))

    @property
    def is_in_sight(self) -> bool:
        """Return whether any part of the plot is visible."""
        return not self._plot.viewport().visibleRegion().isEmpty()  # not of this widget, which the viewport covers

    def time_at(self, x: float) -> float:
        """Return the time at x position `x` of the plot widget, in monotonic seconds."""
        place: QPointF = self._item.getViewBox().mapSceneToView(self._plot.mapToScene(round(x), 0))
        return self._view.start + min(max(place.x(), 0.0), 1.0) * self._view.span

    def draw(
        self, curves: list[Curve], limits: list[Curve], value_range: AxisRange, wall_of: Callable[[float], float]
    ) -> None:
        """Replace the curves and limit curves, and draw the plot over the displayed time span."""
        span = AxisRange(self._view.start, self._view.end)
        self._drawn_curves = curves, limits
        self._curves.set_curves([(curve, self._curve_pen(curve)) for curve in curves], span)
        self._limits.set_curves([(curve, self._limit_pen(curve)) for curve in limits], span)
        self._set_value_range(self._with_room_for_titles(value_range))
        self._wall_of = wall_of
        self._show_cursor(self._view.cursor)
        self._update_ticks()

    def set_limit_lines(self, lines: list[LimitLine]) -> None:
        """Replace the horizontal limit lines."""
        if lines == [line for *_, line in self._lines]:
            return
        self._placed = None
        self._remove_items(item for *items, _ in self._lines for item in items)
        self._lines = [
            (
                self._add_item(pg.InfiniteLine(line.value, angle=0), z=-5),
                self._add_item(pg.TextItem(line.title, anchor=(0, 1)), z=15),
                line,
            )
            for line in lines
        ]
        self._apply_line_colors()

    def set_marks(self, marks: tuple[TimelineMark, ...]) -> None:
        """Show a vertical line at each mark."""
        self._marks.set_positions([self._axis_position(mark.time) for mark in marks])

    def _set_value_range(self, value_range: AxisRange) -> None:
        if value_range != self._value_range:
            self._value_range = value_range
            box = self._item.getViewBox()
            box.setRange(xRange=(0.0, 1.0), yRange=value_range, padding=0)
            # Otherwise the library notices the new range while painting, and paints a second time.
            box.updateMatrix()

    def _axis_position(self, time: float) -> float:
        """Return the position of a time on the axis, from 0 (start of the span) to 1 (end)."""
        return (time - self._view.start) / self._view.span

    def _with_room_for_titles(self, value_range: AxisRange) -> AxisRange:
        """Return the range with room for a title above the highest limit line, where no curve runs through it."""
        if not self._lines:
            return value_range
        highest = max(line.value for *_, line in self._lines)
        share = min(_MOST_TITLE_SHARE, self._title_height / max(1.0, self._item.getViewBox().height()))
        return AxisRange(value_range.low, max(value_range.high, (highest - share * value_range.low) / (1 - share)))

    @property
    def _title_height(self) -> float:
        return QFontMetrics(self._theme.font("small")).height() + self._theme.spacing.tiny

    def _place_line_titles(self) -> None:
        """Place each title above its limit line, side by side, if they fit, and those of close lines in one row."""
        if not self._lines:
            return
        width = max(1.0, self._item.getViewBox().width())
        metrics, x = QFontMetrics(self._theme.font("small")), 0
        value_per_pixel = (self._value_range.high - self._value_range.low) / max(1.0, self._item.getViewBox().height())
        near = self._title_height * value_per_pixel
        values = [line.value for *_, line in self._lines]
        for _, title, line in self._lines:
            title.setPos(x / width, max(value for value in values if line.value <= value <= line.value + near))
            x += metrics.horizontalAdvance(line.title) + self._theme.spacing.large
            title.setVisible(x < width)

    def _update_ticks(self) -> None:
        box = self._item.getViewBox()
        times = time_ticks(self._view, self._theme, box.width(), self._wall_of)
        self._item.getAxis("bottom").set_ticks([(self._axis_position(time), text) for time, text in times])
        placed = self._value_range, box.width(), box.height()
        if placed != self._placed:
            self._placed = placed
            self._place_line_titles()
            self._item.getAxis("left").set_ticks(
                metric_ticks(self._unit, self._value_range, int(box.height() / _PIXELS_PER_TICK))
            )

    def _apply_theme(self) -> None:
        super()._apply_theme()
        grid = blended(self._theme.color("border"), self._theme.color("surface"), _GRID_SHARE)
        for name in ("left", "bottom"):
            self._item.getAxis(name).set_grid_color(grid)
        self._item.getAxis("left").setWidth(axis_width(self._theme))
        self._item.getAxis("bottom").setHeight(QFontMetrics(self._theme.font("small")).height() + 4)
        self._marks.set_pen(cosmetic_pen(self._theme.color("accent"), 1, Qt.PenStyle.DashLine))
        self._pens.clear()
        curves, limits = self._drawn_curves
        self._curves.set_pens([self._curve_pen(curve) for curve in curves])
        self._limits.set_pens([self._limit_pen(curve) for curve in limits])
        self._apply_line_colors()

    def _apply_line_colors(self) -> None:
        for rule, title, line in self._lines:
            color = self._theme.color("muted") if line.stroke is None else series_pen(self._theme, line.stroke).color()
            rule.setPen(cosmetic_pen(color, 1, Qt.PenStyle.DashDotLine))
            title.setColor(color)
            # The curves behind a title show through.
            background = self._theme.color("surface")
            background.setAlphaF(_TITLE_OPACITY)
            title.fill = QBrush(background)
            title.setFont(self._theme.font("small"))

    def _curve_pen(self, curve: Curve) -> QPen:
        key = curve.stroke, curve.is_condensed
        if key not in self._pens:
            self._pens[key] = series_pen(self._theme, curve.stroke, is_condensed=curve.is_condensed)
        return self._pens[key]

    def _limit_pen(self, curve: Curve) -> QPen:
        return cosmetic_pen(series_pen(self._theme, curve.stroke).color(), 1, Qt.PenStyle.DotLine)

    @Slot(object)
    def _show_cursor(self, time: float | None) -> None:
        self._cursor.setVisible(time is not None)
        if time is not None:
            self._cursor.setPos(self._axis_position(time))


class _DrawnCurve(NamedTuple):
    """A curve ready for drawing: its pen, and a polyline for each part between gaps."""

    pen: QPen
    polylines: tuple[QPolygonF, ...]


class _FillingItem(pg.GraphicsObject):  # type: ignore[misc]  # the library has no annotations
    """Graphics item that fills the view, so that the library need not compute its bounds."""

    def viewRangeChanged(self) -> None:
        """Announce a changed geometry, since the item fills the view."""
        self.prepareGeometryChange()

    def boundingRect(self) -> QRectF:
        """Return the visible area."""
        return QRectF(self.viewRect())


class MarksItem(_FillingItem):
    """Vertical lines over the whole height; an item for each would take longer than drawing the curves."""

    def __init__(self) -> None:
        super().__init__()
        self.positions: list[float] = []
        self._pen = QPen()

    def set_positions(self, positions: list[float]) -> None:
        """Replace the positions of the lines on the time axis."""
        if positions != self.positions:
            self.positions = positions
            self.update()

    def set_pen(self, pen: QPen) -> None:
        """Replace the pen of the lines."""
        self._pen = pen
        self.update()

    def paint(self, painter: QPainter, _option: object, _widget: object) -> None:
        """Draw the lines."""
        painter.setPen(self._pen)
        area = self.boundingRect()
        for position in self.positions:
            painter.drawLine(QPointF(position, area.top()), QPointF(position, area.bottom()))


class CurvesItem(_FillingItem):
    """Graphics item that draws all curves without computing their bounds.

    With an item for each curve, the library would compute the bounds several times per redraw, which takes longer than
    drawing.
    """

    def __init__(self) -> None:
        super().__init__()
        self._drawn: list[_DrawnCurve] = []

    def set_curves(self, curves: list[tuple[Curve, QPen]], span: AxisRange) -> None:
        """Replace the curves and their pens; the axis positions 0 and 1 are the ends of the time `span`."""
        self._drawn = [_DrawnCurve(pen, polylines(curve, span)) for curve, pen in curves]
        self.update()

    def set_pens(self, pens: list[QPen]) -> None:
        """Replace the pens of the drawn curves, in the same order."""
        self._drawn = [drawn._replace(pen=pen) for drawn, pen in zip(self._drawn, pens, strict=True)]
        self.update()

    def paint(self, painter: QPainter, _option: object, _widget: object) -> None:
        """Draw the curves."""
        for drawn in self._drawn:
            painter.setPen(drawn.pen)
            for polyline in drawn.polylines:
                painter.drawPolyline(polyline)
