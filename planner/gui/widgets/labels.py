"""Labels in one of the text roles of the theme, and one of a line that shortens its words to the room there is."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QFont, QPainter, QPaintEvent, QPalette, QResizeEvent
from PySide6.QtWidgets import QLabel, QSizePolicy

from planner.gui.theme import mark

_SHORTEST = 4


def make_label(text: str = "", role: str = "", font: QFont | None = None, wrap: bool = False) -> QLabel:
    """Return a label of plain text; `role` is `muted`, `ok`, `warn` or `bad`."""
    label = QLabel(text, textFormat=Qt.TextFormat.PlainText, wordWrap=wrap)
    if role:
        mark(label, role)
    if font is not None:
        label.setFont(font)
    return label


class ElidedLabel(QLabel):
    """Ends in an ellipsis where its text is too long; the tooltip has all of it then, and screen readers always do.

    With `is_live` its width does not depend on its words: those that change every second would lay out the whole
    window anew.
    """

    def __init__(self, text: str = "", role: str = "", *, is_live: bool = False) -> None:
        super().__init__(text, textFormat=Qt.TextFormat.PlainText)
        self._words = self._shown = text
        self._is_live = is_live
        if is_live:
            self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        if role:
            mark(self, role)

    def text(self) -> str:
        """Return all of the words."""
        return self._words

    def setText(self, text: str) -> None:
        """Show other words."""
        if text == self._words:
            return
        self._words = text
        if self._is_live:
            self.setAccessibleName(text)
            self.update()
        else:
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
        self._shown = self.fontMetrics().elidedText(self._words, Qt.TextElideMode.ElideRight, width)
        self.setToolTip("" if self._shown == self._words else self._words)
