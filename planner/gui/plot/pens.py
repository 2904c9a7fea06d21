"""Pens and color mixing for the plots; importing this module does not import the plotting library."""

from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPen

from planner.gui.theme import Theme

_COLORS: Final = 8
_DASHES: Final[tuple[tuple[float, ...], ...]] = ((), (7, 3), (2, 2), (8, 2, 2, 2), (12, 4))


def cosmetic_pen(color: QColor, width: float, style: Qt.PenStyle = Qt.PenStyle.SolidLine) -> QPen:
    """Return a pen of `width` pixels, independent of the scale of the axes."""
    pen = QPen(color, width, style)
    pen.setCosmetic(True)
    return pen


def series_pen(theme: Theme, number: int, width: float = 1.0, *, is_condensed: bool = False) -> QPen:
    """Return the line pen of series `number`; the first eight series differ in color, neighbors in dash pattern.

    Dashes would hide parts of a curve that `is_condensed` to its extremes: only series from the ninth on have dashes.
    """
    pen = cosmetic_pen(theme.color(f"series-{number % _COLORS + 1}"), width)
    dash = _DASHES[(number + number // _COLORS) % len(_DASHES)]
    if dash and not (is_condensed and number < _COLORS):
        pen.setDashPattern(dash)
    return pen


def translucent(color: QColor, alpha: int) -> QColor:
    """Return a color with an opacity of `alpha`, from 0 to 255."""
    color = QColor(color)
    color.setAlpha(alpha)
    return color


def blended(color: QColor, ground: QColor, share: float) -> QColor:
    """Return the opaque mix of `color` and the background `ground`, with the fraction `share` of `color`.

    Painting a translucent line takes many times as long, because Qt blends it in other threads.
    """
    rest = 1 - share
    return QColor(
        round(share * color.red() + rest * ground.red()),
        round(share * color.green() + rest * ground.green()),
        round(share * color.blue() + rest * ground.blue()),
    )
