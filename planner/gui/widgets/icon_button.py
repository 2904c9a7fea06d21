"""A button that is only an icon, and still has a name."""

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QToolButton

from planner.gui.theme import Theme


class IconButton(QToolButton):
    """An icon in the theme's colour, with its words as tooltip and for screen readers."""

    def __init__(self, theme: Theme, icon_name: str, words: str, role: str = "muted") -> None:
        super().__init__()
        self._theme, self._icon_name, self._role = theme, icon_name, role
        self.set_words(words)
        self._tint()
        theme.changed.connect(self._tint)

    def set_words(self, words: str) -> None:
        """Say what the button does."""
        self.setToolTip(words)
        self.setAccessibleName(words)

    def set_icon(self, icon_name: str, role: str | None = None) -> None:
        """Show another icon."""
        self._icon_name, self._role = icon_name, role or self._role
        self._tint()

    @Slot()
    def _tint(self) -> None:
        self.setIcon(self._theme.icon(self._icon_name, self._role))
