"""One part of the plan bar's sentence."""

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QToolButton

from planner.gui.theme import Theme, mark

_SHORTEST = 8


class PartButton(QToolButton):
    """A button that shortens its words when the window is narrow; screen readers get all of them."""

    def __init__(self, theme: Theme, what: str) -> None:
        super().__init__()
        self._theme = theme
        self._what = what
        self._words = ""
        self._icon: tuple[str, str] | None = None
        self.setAccessibleName(what)
        mark(self, "part")
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        # Wider than the icon, which stands in its middle: Qt leaves too little air before the words.
        self.setIconSize(QSize(theme.icon_side + theme.spacing.tiny, theme.icon_side))
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self._tint)

    @property
    def words(self) -> str:
        """Return the unshortened words."""
        return self._words

    def say(self, words: str, icon: tuple[str, str] | None = None, tooltip: str = "") -> None:
        """Show `words` after an icon in a colour role."""
        self._words, self._icon = words, icon
        self.setAccessibleName(f"{self._what}: {words}")
        self.setToolTip(tooltip or words)
        self._tint()
        self.updateGeometry()
        self._shorten()

    def sizeHint(self) -> QSize:
        """Ask for room for all words."""
        words = self.fontMetrics().horizontalAdvance(self._words)
        return QSize(self._frame_width() + words + 1, super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        """Be content with a few letters."""
        width = self._frame_width() + self.fontMetrics().averageCharWidth() * _SHORTEST
        return QSize(min(width, self.sizeHint().width()), self.sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Shorten the words to the room there is."""
        super().resizeEvent(event)
        self._shorten()

    def _frame_width(self) -> int:
        # The style sheet's padding and border on both sides, the icon, and the gap that Qt leaves after it.
        space = self._theme.spacing
        return self.iconSize().width() + 2 * (space.small + self._theme.tokens.hairline) + space.small

    @Slot()
    def _tint(self) -> None:
        if self._icon is not None:
            self.setIcon(self._theme.icon(*self._icon))
            mark(self, self._icon[1], "tone")

    def _shorten(self) -> None:
        room = self.width() - self._frame_width()
        self.setText(self.fontMetrics().elidedText(self._words, Qt.TextElideMode.ElideMiddle, max(room, 0)))
