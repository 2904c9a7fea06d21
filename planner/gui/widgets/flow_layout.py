"""A layout that goes from left to right and starts a new line where the width ends."""

from PySide6.QtCore import QMargins, QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem


class FlowLayout(QLayout):
    """Lines of items at their preferred size, `spacing` apart both ways."""

    def __init__(self, spacing: int) -> None:
        super().__init__()
        self._items: list[QLayoutItem] = []
        self.setSpacing(spacing)
        self.setContentsMargins(QMargins())

    def addItem(self, item: QLayoutItem) -> None:
        """Add an item at the end."""
        self._items.append(item)

    def count(self) -> int:
        """Return the number of items."""
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        """Return the item at `index`, none past the end."""
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        """Remove the item at `index` and return it."""
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        """Take no more room than is needed."""
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        """Return that the height follows from the width."""
        return True

    def heightForWidth(self, width: int) -> int:
        """Return the height of all lines."""
        return self._arrange(QRect(0, 0, width, 0), move=False)

    def sizeHint(self) -> QSize:
        """Return the room of the largest item."""
        return self.minimumSize()

    def minimumSize(self) -> QSize:
        """Return the room of the largest item."""
        sizes = [item.minimumSize() for item in self._items] or [QSize()]
        return QSize(max(size.width() for size in sizes), max(size.height() for size in sizes))

    def setGeometry(self, rect: QRect) -> None:
        """Place the items within `rect`."""
        super().setGeometry(rect)
        self._arrange(rect, move=True)

    def _arrange(self, area: QRect, move: bool) -> int:
        rect = area.marginsRemoved(self.contentsMargins())
        left, top, line = rect.left(), rect.top(), 0
        for item in self._items:
            size = item.sizeHint()
            if left > rect.left() and left + size.width() > rect.right() + 1:
                left, top, line = rect.left(), top + line + self.spacing(), 0
            if move:
                item.setGeometry(QRect(QPoint(left, top), size))
            left, line = left + size.width() + self.spacing(), max(line, size.height())
        return top + line + self.contentsMargins().bottom() - area.top()
