"""The header of a record table: titles over their cells, painted plainly.

Through the style sheet a header takes a third of what a keystroke in the search may take.
"""

from typing import Final

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QHeaderView, QWidget

from planner.gui.theme import Theme

_ARROWS: Final = {Qt.SortOrder.AscendingOrder: "chevron-up", Qt.SortOrder.DescendingOrder: "chevron-down"}


class RecordHeader(QHeaderView):
    """A header that can be clicked to sort; the arrow stands beside the title."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._theme = theme
        self.setSectionsClickable(True)
        self.setSortIndicatorShown(True)
        self.setHighlightSections(False)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)

    def sizeHint(self) -> QSize:
        """Return the height of a line with air around it."""
        return QSize(self.length(), self.fontMetrics().height() + 2 * self._theme.spacing.small)

    def paintSection(self, painter: QPainter, rect: QRect, position: int) -> None:
        """Paint the title and, if the table is sorted by this column, the arrow."""
        painter.fillRect(rect, self._theme.color("surface"))
        painter.fillRect(rect.left(), rect.bottom(), rect.width(), 1, self._theme.color("border"))
        room = rect.adjusted(self._theme.spacing.small, 0, -self._theme.spacing.small, -1)
        sorted_by = position == self.sortIndicatorSection()
        model, across = self.model(), self.orientation()
        align: Qt.AlignmentFlag = model.headerData(position, across, Qt.ItemDataRole.TextAlignmentRole)
        title: str = model.headerData(position, across)
        if sorted_by:
            room = self._paint_arrow(painter, room, title, align)
        painter.setPen(self._theme.color("text" if sorted_by else "muted"))
        painter.drawText(room, align, self.fontMetrics().elidedText(title, Qt.TextElideMode.ElideRight, room.width()))

    def _paint_arrow(self, painter: QPainter, room: QRect, title: str, align: Qt.AlignmentFlag) -> QRect:
        """Paint the arrow before a title on the right, after one on the left; return what is left of the room."""
        side = self._theme.icon_side
        width = min(self.fontMetrics().horizontalAdvance(title), room.width() - side)
        on_right = bool(align & Qt.AlignmentFlag.AlignRight)
        left = room.right() - width - side if on_right else room.left() + width
        ratio = painter.device().devicePixelRatio()
        arrow = self._theme.icon(_ARROWS[self.sortIndicatorOrder()]).pixmap(QSize(side, side), ratio)
        painter.drawPixmap(left, room.top() + (room.height() - side) // 2, arrow)
        return room.adjusted(side, 0, 0, 0) if on_right else room.adjusted(0, 0, -side, 0)
