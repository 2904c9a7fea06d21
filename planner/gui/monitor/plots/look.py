"""How plots, legend and band look alike: the stroke of each card, and the room left of the time."""

from typing import Final

from PySide6.QtGui import QFontMetrics, QPen

from planner.gui.theme import Theme
from planner.gui.widgets.plot import cosmetic_pen

_COLORS: Final = 8
_DASHES: Final[tuple[tuple[float, ...], ...]] = ((), (7, 3), (2, 2), (8, 2, 2, 2), (12, 4))

_WIDEST_TICK: Final = "1,000\u2009MB/s"


def stroke(theme: Theme, number: int, width: float = 1.0, *, is_condensed: bool = False) -> QPen:
    """Return the pen of the card at this place; the first eight differ in colour, and each from the next in dash.

    Where a curve is condensed to extremes dashes would cut into them: there only those have any that need them.
    """
    pen = cosmetic_pen(theme.color(f"series-{number % _COLORS + 1}"), width)
    dash = _DASHES[(number + number // _COLORS) % len(_DASHES)]
    if dash and not (is_condensed and number < _COLORS):
        pen.setDashPattern(dash)
    return pen


def axis_width(theme: Theme) -> int:
    """Return the room left of every plot, the same for all so that their times are below each other."""
    return QFontMetrics(theme.font("small")).horizontalAdvance(_WIDEST_TICK) + theme.spacing.small
