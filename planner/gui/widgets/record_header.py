"""The header of a record table: titles over their cells with the unit on a line of its own, painted plainly.

Through the style sheet a header takes a third of what a keystroke in the search may take.
"""

from typing import Any, Final

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter
from PySide6.QtWidgets import QHeaderView, QWidget

from planner.gui.theme import Theme
from planner.gui.widgets.text_cache import TextCache
from planner.present.columns import Column

_ARROWS: Final = {Qt.SortOrder.AscendingOrder: "chevron-up", Qt.SortOrder.DescendingOrder: "chevron-down"}


class RecordHeader(QHeaderView):
    """A header that can be clicked to sort; the arrow stands beside the unit, where it takes no room from the title."""

    def __init__(self, theme: Theme, columns: tuple[Column[Any], ...], parent: QWidget) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._theme = theme
        self._columns = columns
        self._titles, self._units = TextCache(), TextCache()
        self._small = theme.font("small")
        self.setSectionsClickable(True)
        self.setSortIndicatorShown(True)
        self.setHighlightSections(False)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)

    def sizeHint(self) -> QSize:
        """Return the height of two lines with air around them."""
        height = self.fontMetrics().height() + QFontMetrics(self._small).height()
        return QSize(self.length(), height + 2 * self._theme.spacing.tiny)

    def paintSection(self, painter: QPainter, rect: QRect, position: int) -> None:
        """Paint the title and beneath it the unit and, if the table is sorted by this column, the arrow."""
        column, sorted_by = self._columns[position], position == self.sortIndicatorSection()
        padding, air = self._theme.spacing.small, self._theme.spacing.tiny
        painter.fillRect(rect, self._theme.color("surface"))
        painter.fillRect(rect.left(), rect.bottom(), rect.width(), 1, self._theme.color("border"))
        room = rect.adjusted(padding, air, -padding, -air)
        on_right = column.align == "right"
        painter.setPen(self._theme.color("text" if sorted_by else "muted"))
        _paint_line(painter, self._titles, self.font(), column.title, room, on_right)
        room.setTop(room.top() + self._titles.height)
        width = _paint_line(painter, self._units, self._small, column.unit, room, on_right)
        if sorted_by:
            self._paint_arrow(painter, room, width, on_right)

    def _paint_arrow(self, painter: QPainter, room: QRect, beside: int, on_right: bool) -> None:
        """Paint the arrow before a unit on the right, after one on the left."""
        side = self._theme.icon_side
        left = room.left() + (room.width() - beside - side if on_right else beside)
        ratio = painter.device().devicePixelRatio()
        arrow = self._theme.icon(_ARROWS[self.sortIndicatorOrder()]).pixmap(QSize(side, side), ratio)
        painter.drawPixmap(left, room.top() + (self._units.height - side) // 2, arrow)


def _paint_line(painter: QPainter, cache: TextCache, font: QFont, text: str, room: QRect, on_right: bool) -> int:
    """Paint a line at the top of `room` and return its width."""
    cache.use(font)
    painter.setFont(font)
    static, width = cache.lay(text, room.width())
    painter.drawStaticText(room.left() + room.width() - width if on_right else room.left(), room.top(), static)
    return width
