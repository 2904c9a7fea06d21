"""Time against cost of every option, on logarithmic axes. Importing it imports pyqtgraph, which takes half a second."""

from math import log10
from typing import Any, Final

import pyqtgraph as pg
from pyqtgraph.GraphicsScene.mouseEvents import MouseClickEvent
from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt, Signal, Slot
from PySide6.QtGui import QColor, QFontMetricsF
from PySide6.QtWidgets import QWidget

from planner.gui.cost.curve.data import money_mark
from planner.gui.theme import Theme
from planner.gui.widgets.plot import Plot, cosmetic_pen
from planner.gui.widgets.scales import log_ticks, place_label
from planner.plan.recommend.wish import Having
from planner.present import format as fmt
from planner.present.cost.recommendation import OptionRow

ROLES: Final[dict[Having, str]] = {"rent": "series-1", "own": "series-2"}
_SYMBOLS: Final[dict[Having, str]] = {"rent": "o", "own": "s"}
_POINT_ALPHA: Final = 150
_NEAR_PIXELS: Final = 12
_ROOM: Final = 0.06
_PIXELS_A_TIME: Final = 44
_PIXELS_AN_AMOUNT: Final = 30
_LOWEST_USD: Final = 1e-6


class ParetoPlot(Plot):
    """A point for each option; those that nothing beats in both are joined. `hovered` and `chosen` carry a row."""

    hovered = Signal(object)
    chosen = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self._plot.setAccessibleName("Time against cost; the same figures are in the table")
        self._all: tuple[OptionRow, ...] = ()
        self._rows: tuple[OptionRow, ...] = ()
        self._shown: frozenset[Having] = frozenset(("rent", "own"))
        self._points: dict[Having, Any] = {
            having: pg.ScatterPlotItem(size=6, symbol=symbol) for having, symbol in _SYMBOLS.items()
        }
        self._front: Any = self._item.plot(antialias=True)
        self._named: Any = pg.ScatterPlotItem(size=12, symbol="d")
        self._labels: list[tuple[Any, OptionRow]] = []
        for item in (*self._points.values(), self._named):
            self._item.addItem(item, ignoreBounds=True)
        self._plot.scene().sigMouseMoved.connect(self._on_moved)
        self._plot.scene().sigMouseClicked.connect(self._on_clicked)
        self._dress()

    @property
    def rows(self) -> tuple[OptionRow, ...]:
        """Return the options that are drawn."""
        return self._rows

    def set_rows(self, rows: tuple[OptionRow, ...]) -> None:
        """Show other options; what cannot be compared is left out."""
        self._all = tuple(row for row in rows if row.option.comparable)
        per_token = bool(rows) and rows[0].period != "run"
        self._item.getAxis("bottom").setLabel("Seconds a token" if per_token else "Hours")
        self._item.getAxis("left").setLabel(f"USD a {rows[0].period if rows else 'run'}")
        self._draw()

    def show_only(self, shown: frozenset[Having]) -> None:
        """Draw only what is had in one of these ways."""
        self._shown = shown
        self._draw()

    def place_of(self, row: OptionRow) -> tuple[float, float]:
        """Return where an option lies on the axes."""
        return log10(row.option.slowness), log10(max(row.option.usd, _LOWEST_USD))

    def label_boxes(self) -> tuple[QRectF, ...]:
        """Return where the labels are, in pixels."""
        return tuple(label.mapRectToScene(label.boundingRect()) for label, _ in self._labels)

    def _draw(self) -> None:
        self._rows = tuple(row for row in self._all if row.option.having in self._shown)
        for having, item in self._points.items():
            item.setData(*self._coordinates([row for row in self._rows if row.option.having == having]))
        front = sorted((row for row in self._rows if row.is_unbeaten), key=self.place_of)
        self._front.setData(*self._coordinates(front))
        named = [row for row in self._rows if row.awards]
        self._named.setData(*self._coordinates(named))
        self._make_labels(named)
        self._place_range()
        self._place_ticks()

    def _coordinates(self, rows: list[OptionRow]) -> tuple[list[float], list[float]]:
        places = [self.place_of(row) for row in rows]
        return [x for x, _ in places], [y for _, y in places]

    def _make_labels(self, named: list[OptionRow]) -> None:
        for label, _ in self._labels:
            self._item.removeItem(label)
        self._labels = []
        for row in named:
            label = pg.TextItem(", ".join(row.awards), color=self._theme.color("text"))
            label.setFont(self._theme.font("small"))
            self._item.addItem(label, ignoreBounds=True)
            self._labels.append((label, row))

    def _place_range(self) -> None:
        xs, ys = self._coordinates(list(self._rows))
        for values, set_range in ((xs, self._item.setXRange), (ys, self._item.setYRange)):
            if values:
                room = _ROOM * max(max(values) - min(values), 0.5)
                set_range(min(values) - room, max(values) + room, padding=0)

    def _place_ticks(self) -> None:
        if not self._rows:
            return
        (left, right), (bottom, top) = self._item.getViewBox().viewRange()
        hours = log_ticks(left, right, self.width() // _PIXELS_A_TIME, fmt.plain)
        self._item.getAxis("bottom").setTicks([hours])
        self._item.getAxis("left").setTicks([log_ticks(bottom, top, self.height() // _PIXELS_AN_AMOUNT, money_mark)])
        self._place_labels()

    def _place_labels(self) -> None:
        """Put each label where it hides least; in pixels, and so again whenever the size is another."""
        box = self._item.getViewBox()
        area = box.sceneBoundingRect()
        points = [box.mapViewToScene(QPointF(*self.place_of(row))) for row in self._rows]
        metrics = QFontMetricsF(self._theme.font("small"))
        taken: list[QRectF] = []
        for label, row in self._labels:
            wanted = label.mapRectToScene(label.boundingRect()).size()
            size = QSizeF(max(wanted.width(), metrics.horizontalAdvance(", ".join(row.awards))), wanted.height())
            place = place_label(box.mapViewToScene(QPointF(*self.place_of(row))), size, area, points, taken)
            taken.append(place)
            label.setPos(box.mapSceneToView(place.topLeft()))

    def _dress(self) -> None:
        super()._dress()
        theme = self._theme
        for having, item in self._points.items():
            color = QColor(theme.color(ROLES[having]))
            color.setAlpha(_POINT_ALPHA)
            item.setBrush(color)
            item.setPen(None)
        self._named.setBrush(theme.color("accent"))
        self._named.setPen(cosmetic_pen(theme.color("surface"), 1))
        self._front.setPen(cosmetic_pen(theme.color("accent"), 1.5, Qt.PenStyle.DashLine))
        for label, _ in self._labels:
            label.setColor(theme.color("text"))

    @Slot(object)
    def _on_moved(self, position: QPointF) -> None:
        self.hovered.emit(self._row_at(position))

    @Slot(object)
    def _on_clicked(self, event: MouseClickEvent) -> None:
        row = self._row_at(event.scenePos())
        if row is not None:
            self.chosen.emit(row)

    def _row_at(self, position: QPointF) -> OptionRow | None:
        """Return the option under the pointer, within a few pixels."""
        place = self._view_position(position)
        if place is None or not self._rows:
            return None
        wide, high = self._item.getViewBox().viewPixelSize()

        def far(row: OptionRow) -> float:
            x, y = self.place_of(row)
            return float(((x - place.x()) / wide) ** 2 + ((y - place.y()) / high) ** 2)

        nearest = min(self._rows, key=far)
        return nearest if far(nearest) <= _NEAR_PIXELS**2 else None
