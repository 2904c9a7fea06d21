"""Texts laid out once, for views that paint the same ones again and again."""

from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QFontMetrics, QStaticText, QTransform

_LIMIT: Final = 20_000


class TextCache:
    """Texts laid out once for a font and a width; a table shows the same few thousand again and again."""

    def __init__(self) -> None:
        self.font = QFont()
        self._metrics = QFontMetrics(self.font)
        self._laid: dict[tuple[str, int], tuple[QStaticText, int]] = {}
        self.height = self._metrics.height()

    def use(self, font: QFont) -> None:
        """Lay texts out in `font` from now on."""
        if font != self.font:
            self.font, self._metrics = QFont(font), QFontMetrics(font)
            self._laid.clear()
            self.height = self._metrics.height()

    def lay(self, text: str, width: int) -> tuple[QStaticText, int]:
        """Return `text` and its width, shortened with an ellipsis where it would be wider than `width`."""
        found = self._laid.get((text, width))
        if found is None:
            if len(self._laid) > _LIMIT:
                self._laid.clear()
            found = self._laid[text, width] = self._make(text, width)
        return found

    def _make(self, text: str, width: int) -> tuple[QStaticText, int]:
        shown = self._metrics.elidedText(text, Qt.TextElideMode.ElideRight, width)
        static = QStaticText(shown)
        static.setTextFormat(Qt.TextFormat.PlainText)
        static.prepare(QTransform(), self.font)
        return static, self._metrics.horizontalAdvance(shown)
