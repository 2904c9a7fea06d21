"""Where the columns of the breakdown stand."""

from dataclasses import dataclass
from typing import Final

from PySide6.QtGui import QFontMetricsF

from planner.gui.theme import Theme

GIB: Final = "GiB"
SHARE: Final = "Share"
HOW: Final = "How"
CERTAINTY: Final = "How sure"
_WIDEST_TITLE: Final = "Framework overhead"
_WIDEST_GIB: Final = "123.45"
_WIDEST_SHARE: Final = "100 %"
_WIDEST_CERTAINTY: Final = "counted exactly"


@dataclass(frozen=True, slots=True)
class Columns:
    """Left and right ends of each column, in pixels."""

    chevron: float
    swatch: float
    title: float
    gib_right: float
    share_right: float
    how: float
    how_right: float
    certainty: float
    width: float


def place_columns(theme: Theme, width: int) -> Columns:
    """Return the columns for a table of `width` pixels; *How* takes what the others leave."""
    metrics, plain = QFontMetricsF(theme.font(bold=True)), QFontMetricsF(theme.font())
    gap = theme.spacing.medium
    swatch = theme.icon_side + theme.spacing.tiny
    title = swatch + metrics.ascent() + theme.spacing.small
    gib_right = title + metrics.horizontalAdvance(_WIDEST_TITLE) + metrics.horizontalAdvance(_WIDEST_GIB)
    share_right = gib_right + gap + metrics.horizontalAdvance(_WIDEST_SHARE)
    certainty = max(share_right, width - plain.horizontalAdvance(_WIDEST_CERTAINTY))
    how = share_right + theme.spacing.large
    return Columns(0, swatch, title, gib_right, share_right, how, certainty - gap, certainty, width)
