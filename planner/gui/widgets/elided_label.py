"""A label of one line that shortens its words to the room there is."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPalette, QResizeEvent
from PySide6.QtWidgets import QLabel

from planner.gui.theme import mark

_SHORTEST = 4


class ElidedLabel(QLabel):
    """Ends in an ellipsis where its text is too long; the tooltip has all of it then, and screen readers always do."""

    def __init__(self, text: str = "", role: str = "") -> None:
        super().__init__(text, textFormat=Qt.TextFormat.PlainText)
        self._shown = text
        if role:
            mark(self, role)

    def setText(self, text: str) -> None:
        """Show other words."""
        if text != self.text():
            super().setText(text)
            self._shorten()

    def minimumSizeHint(self) -> QSize:
        """Be content with a few letters."""
        return QSize(self.fontMetrics().averageCharWidth() * _SHORTEST, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Shorten to the new width."""
        super().resizeEvent(event)
        self._shorten()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Write as much as there is room for."""
        painter = QPainter(self)
        painter.setPen(self.palette().color(QPalette.ColorRole.WindowText))
        painter.drawText(self.contentsRect(), self.alignment(), self._shown)
        painter.end()

    def _shorten(self) -> None:
        width = self.contentsRect().width()
        self._shown = self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, width)
        self.setToolTip("" if self._shown == self.text() else self.text())
