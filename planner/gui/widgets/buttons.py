"""Buttons that say what they do, those that are only an icon, and those that look like a link."""

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QMenu, QPushButton, QToolButton

from planner.gui.theme import Theme, mark


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

    def set_menu(self, menu: QMenu) -> None:
        """Open a menu as soon as the button is pressed."""
        self.setMenu(menu)
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)

    @Slot()
    def _tint(self) -> None:
        self.setIcon(self._theme.icon(self._icon_name, self._role))


def push_button(words: str, tooltip: str = "", role: str = "") -> QPushButton:
    """Return a button that says `words`; `role` is `primary`, or `link` for what is done less often."""
    button = QPushButton(words)
    button.setToolTip(tooltip)
    if role:
        mark(button, role)
    return button


def link_button(words: str, tooltip: str = "") -> QPushButton:
    """Return a button that looks like a link."""
    return push_button(words, tooltip, "link")
