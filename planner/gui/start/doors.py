"""The doors of the Start page: large buttons, each for something that a person wants to do."""

from collections.abc import Iterable

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QButtonGroup, QPushButton, QSizePolicy, QWidget

from planner.gui.theme import Theme
from planner.gui.widgets.labels import IconLabel, make_label
from planner.gui.widgets.layout import STRETCH, in_column, in_row


class Door(QPushButton):
    """Large button with an icon, a title and a description; `entered` is emitted on a click and on Return."""

    entered = Signal()

    def __init__(self, theme: Theme, key: str, title: str, icon: str, description: str) -> None:
        super().__init__()
        self.key, self._title = key, title
        self.setCheckable(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        mark = IconLabel(theme)
        mark.show_icon((icon, "accent"))
        self._description = make_label(role="muted", wrap=True)
        space = theme.spacing
        self._column = in_column(
            in_row(mark, (make_label(title, font=theme.font(bold=True)), 1), spacing=space.small),
            self._description,
            STRETCH,
            owner=self,
            margins=space.medium,
            spacing=space.small,
        )
        self.describe(description)

    @property
    def description(self) -> str:
        """Return the text below the title."""
        return self._description.text()

    def describe(self, description: str) -> None:
        """Show `description` below the title."""
        self._description.setText(description)
        self.setAccessibleName(self._title)
        self.setAccessibleDescription(description)
        self.setToolTip(f"{self._title}: {description}")
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        """Return the size of the title and the description."""
        return self._column.sizeHint()

    def minimumSizeHint(self) -> QSize:
        """Return the smallest size in which nothing is cut."""
        return self._column.minimumSize()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter the door with Return."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.setChecked(True)
            self.entered.emit()
        else:
            super().keyPressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Enter the door with a click; the arrow keys, too, click a button, but only choose it."""
        super().mouseReleaseEvent(event)
        if self.rect().contains(event.position().toPoint()):
            self.entered.emit()


class Doors(QWidget):
    """Row of doors, of which one is chosen; `chosen` and `entered` carry the key of the door."""

    chosen = Signal(str)
    entered = Signal(str)

    def __init__(self, theme: Theme, doors: Iterable[Door]) -> None:
        super().__init__()
        self._doors = {door.key: door for door in doors}
        self._group = QButtonGroup(self)
        row = in_row(owner=self, spacing=theme.spacing.medium)
        for door in self._doors.values():
            self._group.addButton(door)
            row.addWidget(door, 1)
            door.toggled.connect(lambda checked, door=door: self._on_toggled(door, checked))
            door.entered.connect(lambda door=door: self.entered.emit(door.key))

    def __getitem__(self, key: str) -> Door:
        return self._doors[key]

    @property
    def key(self) -> str:
        """Return the key of the chosen door."""
        return next(door.key for door in self._doors.values() if door.isChecked())

    def choose(self, key: str) -> None:
        """Choose the door `key`."""
        self._doors[key].setChecked(True)

    def _on_toggled(self, door: Door, checked: bool) -> None:
        if checked:
            self.setFocusProxy(door)
            self.chosen.emit(door.key)
