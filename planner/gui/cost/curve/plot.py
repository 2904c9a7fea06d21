"""The plot of costs over time. Importing it imports pyqtgraph, which takes half a second."""

from typing import Any, Final

import pyqtgraph as pg
from PySide6.QtCore import QEvent, QPointF, Qt, Signal, Slot
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QWidget

from planner.gui.cost.curve.data import Band, CostCurve, money_ticks
from planner.gui.theme import Theme
from planner.gui.widgets.plot import Plot, cosmetic_pen
from planner.gui.widgets.ticks import round_ticks
from planner.present import format as fmt

_BAND_ALPHA: Final = 40
_PIXELS_A_TIME: Final = 90
_PIXELS_AN_AMOUNT: Final = 36


class CostPlot(Plot):
    """Renting and owning, each with its band, and where they meet. `hovered` carries the point under the pointer."""

    hovered = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self._plot.setAccessibleName("Costs over time; the same figures are in its table")
        self._curve: CostCurve | None = None
        self._rent, self._own = (self._item.plot(antialias=True) for _ in range(2))
        self._edges: list[Any] = [self._item.plot() for _ in range(4)]
        self._bands: list[Any] = [pg.FillBetweenItem(*self._edges[at : at + 2]) for at in (0, 2)]
        self._legend: Any = self._item.addLegend(offset=(8, 8))
        self._legend.addItem(self._rent, "Renting")
        self._legend.addItem(self._own, "Owning, less what it sells for")
        self._pointer: Any = pg.InfiniteLine(angle=90)
        self._meeting: Any = pg.ScatterPlotItem(size=10)
        self._words: Any = pg.TextItem(anchor=(0, 1))
        for item in (*self._bands, self._pointer, self._meeting, self._words):
            self._item.addItem(item, ignoreBounds=True)
        for band in self._bands:
            band.setZValue(-10)
        self._item.getAxis("bottom").setLabel("Years")
        self._plot.scene().sigMouseMoved.connect(self._on_moved)
        self._dress()

    def set_curve(self, curve: CostCurve) -> None:
        """Show another curve."""
        self._curve = curve
        years = [point.years for point in curve.points]
        self._rent.setData(years, [point.rent_usd for point in curve.points])
        self._own.setData(years, [point.own_usd for point in curve.points])
        self._place_band(self._edges[:2], curve.rent_band)
        self._place_band(self._edges[2:], curve.own_band)
        self._item.setXRange(0, curve.horizon_years, padding=0.02)
        self._item.setYRange(0, curve.highest_usd, padding=0)
        self._place_meeting(curve)
        self._place_ticks()
        self._hover(None)

    def leaveEvent(self, event: QEvent) -> None:
        """Take the read-out back when the pointer has left."""
        super().leaveEvent(event)
        self._hover(None)

    def _place_band(self, edges: list[Any], band: Band) -> None:
        for edge, values in zip(edges, (band.low_usd, band.high_usd), strict=True):
            edge.setData(list(band.years), list(values))

    def _place_meeting(self, curve: CostCurve) -> None:
        crossing = curve.crossing
        self._meeting.setVisible(crossing is not None)
        self._words.setVisible(crossing is not None)
        if crossing is not None:
            years, usd = crossing
            self._meeting.setData([years], [usd])
            is_late = years > curve.horizon_years / 2
            self._words.setAnchor((1.05, 1.3) if is_late else (-0.05, 2.4))
            self._words.setText(f"even after {fmt.significant(years)} years")
            self._words.setPos(years, usd)

    def _place_ticks(self) -> None:
        if self._curve is not None:
            curve = self._curve
            times = round_ticks(0.0, curve.horizon_years, max(2, self.width() // _PIXELS_A_TIME))
            self._item.getAxis("bottom").setTicks([times])
            self._item.getAxis("left").setTicks([money_ticks(curve.highest_usd, self.height() // _PIXELS_AN_AMOUNT)])

    def _dress(self) -> None:
        super()._dress()
        theme = self._theme
        rent, own = theme.color("accent"), theme.color("text")
        self._rent.setPen(cosmetic_pen(rent, 2, Qt.PenStyle.DashLine))
        self._own.setPen(cosmetic_pen(own, 2))
        for edge in self._edges:
            edge.setPen(None)
        for band, color in zip(self._bands, (rent, own), strict=True):
            faint = QColor(color)
            faint.setAlpha(_BAND_ALPHA)
            band.setBrush(faint)
        self._pointer.setPen(cosmetic_pen(theme.color("muted"), 1, Qt.PenStyle.DotLine))
        self._meeting.setBrush(theme.color("surface"))
        self._meeting.setPen(cosmetic_pen(own, 1.5))
        self._words.setColor(own)
        self._words.setFont(theme.font("small"))
        for _, label in self._legend.items:
            label.setText(label.text, color=theme.color("text"), size=f"{theme.font('small').pointSizeF():.1f}pt")

    @Slot(object)
    def _on_moved(self, position: QPointF) -> None:
        place = self._view_position(position)
        self._hover(None if place is None else place.x())

    def _hover(self, years: float | None) -> None:
        point = None if years is None or self._curve is None else self._curve.nearest(years)
        self._pointer.setVisible(point is not None)
        if point is not None:
            self._pointer.setPos(point.years)
        self.hovered.emit(point)
