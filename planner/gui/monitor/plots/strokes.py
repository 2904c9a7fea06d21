"""The colour and the dash of each card's curves, which no other of the first eight shares."""

from typing import Final

from PySide6.QtGui import QPen

from planner.gui.theme import Theme
from planner.gui.widgets.plot import cosmetic_pen

_COLORS: Final = 8
_DASHES: Final[tuple[tuple[float, ...], ...]] = ((), (7, 3), (2, 2), (8, 2, 2, 2), (12, 4))


def stroke(theme: Theme, number: int, width: float = 1.0) -> QPen:
    """Return the pen of the card with this place among the cards."""
    pen = cosmetic_pen(theme.color(f"series-{number % _COLORS + 1}"), width)
    dash = _DASHES[(number + number // _COLORS) % len(_DASHES)]
    if dash:
        pen.setDashPattern(dash)
    return pen
