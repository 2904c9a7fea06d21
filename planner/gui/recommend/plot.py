"""Time against cost of every option, on logarithmic axes. Importing it imports pyqtgraph, which takes half a second."""

from collections.abc import Callable
from math import floor, log10
from typing import Any, Final

import pyqtgraph as pg
from pyqtgraph.GraphicsScene.mouseEvents import MouseClickEvent
from PySide6.QtCore import QPointF, Qt, Signal, Slot
from PySide6.QtWidgets import QWidget

from planner.gui.theme import Theme
from planner.gui.widgets.plot import Plot, cosmetic_pen
from planner.present import format as fmt
from planner.present.recommend import OptionRow

_NEAR_PIXELS: Final = 12
_STEPS: Final = (1, 2, 5)
_ROOM: Final = 0.08


class ParetoPlot(Plot):
    """A point for each option; those that nothing beats in both are joined. `hovered` and `chosen` carry a row."""

    hovered = Signal(object)
    chosen = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self._plot.setAccessibleName(self.tr("Time against cost; the same figures are in the table"))
        self._rows: tuple[OptionRow, ...] = ()
        self._others: Any = pg.ScatterPlotItem(size=6, symbol="o")
        self._owned: Any = pg.ScatterPlotItem(size=6, symbol="s")
        self._front: Any = self._item.plot(antialias=True)
        self._named: Any = pg.ScatterPlotItem(size=11, symbol="d")
        self._labels: list[Any] = []
        for item in (self._others, self._owned, self._named):
            self._item.addItem(item, ignoreBounds=True)
        self._plot.scene().sigMouseMoved.connect(self._on_moved)
        self._plot.scene().sigMouseClicked.connect(self._on_clicked)
        self._dress()

    def set_rows(self, rows: tuple[OptionRow, ...]) -> None:
        """Show other options; what cannot be compared is left out."""
        self._rows = tuple(row for row in rows if row.option.comparable)
        rented = [row for row in self._rows if row.option.having == "rent"]
        owned = [row for row in self._rows if row.option.having == "own"]
        for item, shown in ((self._others, rented), (self._owned, owned)):
            item.setData([_x(row) for row in shown], [_y(row) for row in shown])
        front = [row for row in self._rows if row.is_unbeaten]
        self._front.setData([_x(row) for row in front], [_y(row) for row in front])
        named = [row for row in self._rows if row.awards]
        self._named.setData([_x(row) for row in named], [_y(row) for row in named])
        self._place_labels(named)
        self._place_range()
        per_token = bool(rows) and rows[0].period != "run"
        self._item.getAxis("bottom").setLabel(self.tr("Seconds a token") if per_token else self.tr("Hours"))
        self._item.getAxis("left").setLabel(self.tr("USD a {0}").format(rows[0].period if rows else "run"))

    def _place_labels(self, named: list[OptionRow]) -> None:
        for label in self._labels:
            self._item.removeItem(label)
        self._labels = []
        for row in named:
            label = pg.TextItem(", ".join(row.awards), anchor=(0, 1.1), color=self._theme.color("text"))
            label.setFont(self._theme.font("small"))
            label.setPos(_x(row), _y(row))
            self._item.addItem(label, ignoreBounds=True)
            self._labels.append(label)

    def _place_range(self) -> None:
        if not self._rows:
            return
        xs, ys = [_x(row) for row in self._rows], [_y(row) for row in self._rows]
        for values, set_range in ((xs, self._item.setXRange), (ys, self._item.setYRange)):
            room = _ROOM * max(max(values) - min(values), 0.3)
            set_range(min(values) - room, max(values) + 2 * room, padding=0)
        self._place_ticks()

    def _place_ticks(self) -> None:
        if not self._rows:
            return
        for name, values, words in (
            ("bottom", [_x(row) for row in self._rows], fmt.plain),
            ("left", [_y(row) for row in self._rows], fmt.money),
        ):
            self._item.getAxis(name).setTicks([_ticks(min(values), max(values), words)])

    def _dress(self) -> None:
        super()._dress()
        theme = self._theme
        for item, role in ((self._others, "muted"), (self._owned, "text"), (self._named, "accent")):
            item.setBrush(theme.color(role))
            item.setPen(None)
        self._front.setPen(cosmetic_pen(theme.color("accent"), 1.5, Qt.PenStyle.DashLine))
        for label in self._labels:
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
        box = self._item.getViewBox()
        wide, high = box.viewPixelSize()
        nearest = min(
            self._rows, key=lambda row: ((_x(row) - place.x()) / wide) ** 2 + ((_y(row) - place.y()) / high) ** 2
        )
        far = ((_x(nearest) - place.x()) / wide) ** 2 + ((_y(nearest) - place.y()) / high) ** 2
        return nearest if far <= _NEAR_PIXELS**2 else None


def _x(row: OptionRow) -> float:
    return log10(row.option.slowness)


def _y(row: OptionRow) -> float:
    return log10(max(row.option.usd, 1e-6))


def _ticks(low: float, high: float, words: Callable[[float], str]) -> list[tuple[float, str]]:
    exponents = range(floor(low) - 1, floor(high) + 2)
    steps = _STEPS if high - low < 2 else _STEPS[:1]
    marks = [(log10(step) + exponent, step * 10.0**exponent) for exponent in exponents for step in steps]
    return [(place, words(value)) for place, value in marks if low - 0.5 <= place <= high + 0.5]
