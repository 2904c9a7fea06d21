"""Push buttons, icon buttons, link buttons and check boxes."""

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QCheckBox, QMenu, QPushButton, QToolButton

from planner.gui.theme import Theme, set_style_role


class IconButton(QToolButton):
    """Button with an icon in a theme color; its text is the tooltip and the accessible name."""

    def __init__(self, theme: Theme, icon_name: str, text: str, role: str = "muted") -> None:
        super().__init__()
        self._theme, self._icon_name, self._role = theme, icon_name, role
        self.set_text(text)
        self._update_icon()
        theme.changed.connect(self._update_icon)

    def set_text(self, text: str) -> None:
        """Set the tooltip and the accessible name."""
        self.setToolTip(text)
        self.setAccessibleName(text)

    def set_icon(self, icon_name: str, role: str | None = None) -> None:
        """Show the icon `icon_name`, in the color of `role` if given."""
        self._icon_name, self._role = icon_name, role or self._role
        self._update_icon()

    def set_menu(self, menu: QMenu) -> None:
        """Let a press of the button open `menu`."""
        self.setMenu(menu)
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)

    @Slot()
    def _update_icon(self) -> None:
        self.setIcon(self._theme.icon(self._icon_name, self._role))


def push_button(text: str, tooltip: str = "", role: str = "") -> QPushButton:
    """Return a push button; `role` is `primary`, or `link` for a less common action."""
    button = QPushButton(text)
    button.setToolTip(tooltip)
    if role:
        set_style_role(button, role)
    return button


def link_button(text: str, tooltip: str = "") -> QPushButton:
    """Return a button that looks like a link."""
    return push_button(text, tooltip, "link")


def check_box(text: str, tooltip: str) -> QCheckBox:
    """Return a check box."""
    box = QCheckBox(text)
    box.setToolTip(tooltip)
    return box
