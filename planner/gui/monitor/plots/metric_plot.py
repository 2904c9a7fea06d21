"""The plot of one quantity over time. Importing it imports pyqtgraph, which takes half a second."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import pyqtgraph as pg
from PySide6.QtCore import QPointF, Qt, Slot
from PySide6.QtGui import QBrush, QFontMetrics, QPen

from planner.gui.monitor.plots.axis import PlainAxis
from planner.gui.monitor.plots.clock_ticks import clock_ticks
from planner.gui.monitor.plots.curves import Curve
from planner.gui.monitor.plots.curves_item import CurvesItem
from planner.gui.monitor.plots.gestures import Gestures
from planner.gui.monitor.plots.look import axis_width, stroke
from planner.gui.monitor.plots.scales import Range, axis_ticks
from planner.gui.monitor.plots.view import TimeView
from planner.gui.theme import Theme
from planner.gui.widgets.plot import Plot, blended, cosmetic_pen
from planner.monitor.history import Mark
from planner.monitor.readings.metrics import Unit

_PIXELS_A_VALUE: Final = 26
_CLOCK: Final = "00:00:00"
_POINTS_A_PIXEL: Final = 0.5
_GRID_SHARE: Final = 0.4


class Line(NamedTuple):
    """A horizontal line with its words; `stroke` is the one of its card, none where it is of all."""

    value: float
    title: str
    stroke: int | None = None


class MetricPlot(Plot):
    """Curves over the span of `view`, lines of limits, and the cursor that all plots share.

    The axis of time always goes from 0 to 1: to move it would cost the library more than it costs to draw the curves.
    """

    def __init__(self, theme: Theme, title: str, unit: Unit, view: TimeView) -> None:
        super().__init__(theme, axes={name: PlainAxis(name) for name in ("left", "bottom")})
        self._unit, self._view = unit, view
        self._curves, self._limits = CurvesItem(), CurvesItem()
        self._shown: tuple[list[Curve], list[Curve]] = ([], [])
        self._lines: list[tuple[Any, Any, Line]] = []
        self._marks: list[Any] = []
        self._ends = Range(0.0, 0.0)
        self._wall_of: Callable[[float], float] = float
        self._cursor: Any = pg.InfiniteLine(angle=90)
        self._cursor.setZValue(20)
        self._cursor.hide()
        for item in (self._limits, self._curves, self._cursor):
            self._item.addItem(item, ignoreBounds=True)
        self._put_grid_behind()
        # Everything moves at once; to find out what did takes longer than to draw it.
        self._plot.setViewportUpdateMode(self._plot.ViewportUpdateMode.FullViewportUpdate)
        self._plot.setAccessibleName(f"{title} over time; the same figures are in its table")
        self.gestures = Gestures(self._plot.viewport(), view, self.time_at)
        view.cursor_moved.connect(self._show_cursor)
        self._dress()

    @property
    def columns(self) -> int:
        """Return as how many columns a curve is to be drawn: no more points than pixels."""
        return max(1, int(self._item.getViewBox().width() * _POINTS_A_PIXEL))

    def time_at(self, x: float) -> float:
        """Return the time at a horizontal place of the plot's surface."""
        place: QPointF = self._item.getViewBox().mapSceneToView(self._plot.mapToScene(round(x), 0))
        return self._view.start + min(max(place.x(), 0.0), 1.0) * self._view.span

    def draw(self, curves: list[Curve], limits: list[Curve], ends: Range, wall_of: Callable[[float], float]) -> None:
        """Show these curves and no others over the view's present span."""
        span = Range(self._view.start, self._view.end)
        self._shown = curves, limits
        self._curves.set_curves([(curve, self._pen(curve)) for curve in curves], span)
        self._limits.set_curves([(curve, self._limit_pen(curve)) for curve in limits], span)
        self._set_ends(ends)
        self._wall_of = wall_of
        self._show_cursor(self._view.cursor)
        self._place_words()
        self._place_ticks()

    def set_lines(self, lines: list[Line]) -> None:
        """Show these lines and no others."""
        if lines == [line for *_, line in self._lines]:
            return
        for rule, words, _ in self._lines:
            self._item.removeItem(rule)
            self._item.removeItem(words)
        self._lines = [(pg.InfiniteLine(angle=0), pg.TextItem(), line) for line in lines]
        for rule, words, line in self._lines:
            rule.setPos(line.value)
            rule.setZValue(-5)
            words.setAnchor((0, 0))
            words.setZValue(15)
            words.setText(line.title)
            self._item.addItem(rule, ignoreBounds=True)
            self._item.addItem(words, ignoreBounds=True)
        self._dress_lines()

    def set_marks(self, marks: tuple[Mark, ...]) -> None:
        """Show a vertical line at each mark."""
        while len(self._marks) < len(marks):
            line = pg.InfiniteLine(angle=90)
            self._item.addItem(line, ignoreBounds=True)
            line.setPen(self._mark_pen())
            self._marks.append(line)
        for number, line in enumerate(self._marks):
            line.setVisible(number < len(marks))
            if number < len(marks):
                line.setPos(self._place_of(marks[number].time))

    def _set_ends(self, ends: Range) -> None:
        if ends != self._ends:
            self._ends = ends
            box = self._item.getViewBox()
            box.setRange(xRange=(0.0, 1.0), yRange=ends, padding=0)
            # The library would find out while it paints that all has moved, and paint a second time.
            box.updateMatrix()

    def _place_of(self, time: float) -> float:
        """Return where a time is on the axis."""
        return (time - self._view.start) / self._view.span

    def _place_words(self) -> None:
        """Put the words of the lines beside each other, since lines may lie close together."""
        if not self._lines:
            return
        a_pixel = 1 / max(1.0, self._item.getViewBox().width())
        metrics, x = QFontMetrics(self._theme.font("small")), 0
        for _, words, line in self._lines:
            words.setPos(x * a_pixel, line.value)
            x += metrics.horizontalAdvance(line.title) + self._theme.spacing.huge

    def _place_ticks(self) -> None:
        box = self._item.getViewBox()
        clock = QFontMetrics(self._theme.font("small")).horizontalAdvance(_CLOCK)
        wanted = int(box.width() / (2 * clock))
        ticks = clock_ticks(self._view.start, self._view.end, wanted, self._wall_of)
        self._item.getAxis("bottom").set_marks([(self._place_of(time), text) for time, text in ticks])
        wanted = int(box.height() / _PIXELS_A_VALUE)
        self._item.getAxis("left").set_marks(axis_ticks(self._unit, self._ends, wanted))

    def _dress(self) -> None:
        super()._dress()
        grid = blended(self._theme.color("border"), self._theme.color("surface"), _GRID_SHARE)
        for name in ("left", "bottom"):
            axis = self._item.getAxis(name)
            axis.grid_color = grid
            axis.forget_words()
        self._item.getAxis("left").setWidth(axis_width(self._theme))
        self._item.getAxis("bottom").setHeight(QFontMetrics(self._theme.font("small")).height() + 4)
        curves, limits = self._shown
        self._curves.set_pens([self._pen(curve) for curve in curves])
        self._limits.set_pens([self._limit_pen(curve) for curve in limits])
        self._cursor.setPen(cosmetic_pen(self._theme.color("muted"), 1))
        for line in self._marks:
            line.setPen(self._mark_pen())
        self._dress_lines()

    def _dress_lines(self) -> None:
        for rule, words, line in self._lines:
            color = self._theme.color("muted") if line.stroke is None else stroke(self._theme, line.stroke).color()
            rule.setPen(cosmetic_pen(color, 1, Qt.PenStyle.DashDotLine))
            words.setColor(color)
            words.fill = QBrush(self._theme.color("surface"))
            words.setFont(self._theme.font("small"))

    def _pen(self, curve: Curve) -> QPen:
        return stroke(self._theme, curve.stroke, is_condensed=curve.is_condensed)

    def _limit_pen(self, curve: Curve) -> QPen:
        return cosmetic_pen(stroke(self._theme, curve.stroke).color(), 1, Qt.PenStyle.DotLine)

    def _mark_pen(self) -> QPen:
        return cosmetic_pen(self._theme.color("accent"), 1, Qt.PenStyle.DashLine)

    @Slot(object)
    def _show_cursor(self, time: float | None) -> None:
        self._cursor.setVisible(time is not None)
        if time is not None:
            self._cursor.setPos(self._place_of(time))
