"""What the painters of the stacked bar share: fonts, lengths, and where pixels of the layout lie in the widget."""

from PySide6.QtCore import QRectF
from PySide6.QtGui import QFontMetricsF

from planner.gui.memory.bar.layout import BarLayout, Piece
from planner.gui.theme import Theme
from planner.present import format as fmt


class Canvas:
    """The bar's rectangle within a widget of `width` pixels, with the fonts that are written in it."""

    def __init__(self, theme: Theme, width: int) -> None:
        self.theme = theme
        self.width = width
        self.small = theme.font("small")
        self.bold = theme.font("small", bold=True)
        self.metrics = QFontMetricsF(self.small)
        self.bold_metrics = QFontMetricsF(self.bold)
        self.line = self.metrics.height() + theme.spacing.tiny
        # One pixel stays free around it for the outline.
        self.bar = QRectF(1, 1, max(1, width - 2), round(2 * self.metrics.height() + 2 * theme.spacing.tiny))
        self.scale_top = self.bar.bottom() + 2 * theme.spacing.tiny
        self.legend_top = self.scale_top + self.line

    def x(self, x: float) -> float:
        """Return the widget's x of a pixel of the layout."""
        return self.bar.left() + x

    def rect(self, left: float, right: float) -> QRectF:
        """Return the part of the bar between two pixels of the layout."""
        return QRectF(self.x(left), self.bar.top(), right - left, self.bar.height())

    def labelled(self, layout: BarLayout) -> frozenset[str]:
        """Return the names of the pieces that are wide enough to be named inside the bar; the legend has the others."""
        return frozenset(piece.segment.name for piece in layout.pieces if self._has_room(piece))

    def _has_room(self, piece: Piece) -> bool:
        if piece.segment.kind == "overflow":
            return False
        title = self.metrics.horizontalAdvance(piece.segment.title)
        size = self.bold_metrics.horizontalAdvance(fmt.size(piece.segment.bytes))
        return piece.right - piece.left >= max(title, size) + 2 * self.theme.spacing.small
