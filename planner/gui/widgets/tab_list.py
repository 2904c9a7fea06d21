"""The tabs' names as a column at the left edge of the window."""

from functools import partial

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtWidgets import QButtonGroup, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from planner.gui.theme import Theme, mark


class TabList(QWidget):
    """One button a tab; the arrow keys move between them. `chosen` carries the tab's key."""

    chosen = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._buttons: dict[str, QToolButton] = {}
        self._icons: dict[str, str] = {}
        self._group = QButtonGroup(self)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        mark(self, "sunken")
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(*(theme.spacing.small,) * 4)
        self._layout.setSpacing(theme.spacing.tiny)
        self._layout.addStretch(1)
        theme.changed.connect(self._tint)

    def add(self, key: str, title: str, icon: str, tooltip: str) -> None:
        """Append a tab."""
        button = QToolButton(self)
        button.setText(title)
        button.setToolTip(tooltip)
        button.setCheckable(True)
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        button.setIconSize(QSize(self._theme.icon_side + self._theme.spacing.tiny, self._theme.icon_side))
        button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        mark(button, "tab")
        button.clicked.connect(partial(self.chosen.emit, key))
        self._group.addButton(button)
        self._layout.insertWidget(self._layout.count() - 1, button)
        self._buttons[key], self._icons[key] = button, icon
        self._tint()

    def set_current(self, key: str) -> None:
        """Mark the tab that is shown."""
        self._buttons[key].setChecked(True)
        self._tint()

    @Slot()
    def _tint(self) -> None:
        for key, button in self._buttons.items():
            button.setIcon(self._theme.icon(self._icons[key], "accent" if button.isChecked() else "muted"))
