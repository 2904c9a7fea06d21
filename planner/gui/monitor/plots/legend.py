"""A legend whose entries can be clicked."""

from collections.abc import Hashable
from functools import partial
from typing import Any, Final, NamedTuple

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QFontMetrics, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QWidget

from planner.gui.monitor.plots.look import stroke
from planner.gui.theme import Theme
from planner.gui.widgets.layout import FlowLayout

_SWATCH: Final = 24


class LegendEntry(NamedTuple):
    """What a curve is known by, what it is called, and which stroke it has."""

    key: Hashable
    title: str
    stroke: int


class Legend(QWidget):
    """A button an entry; `toggled` carries the keys that are switched off. A double click leaves only that one on."""

    toggled = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._entries: tuple[LegendEntry, ...] = ()
        self._buttons: list[LegendButton] = []
        self._flow = FlowLayout(theme.spacing.small)
        self.setLayout(self._flow)

    @property
    def hidden(self) -> frozenset[Any]:
        """Return the keys that are switched off."""
        return frozenset(button.entry.key for button in self._buttons if not button.isChecked())

    @property
    def buttons(self) -> "tuple[LegendButton, ...]":
        """Return the buttons in their order."""
        return tuple(self._buttons)

    def set_entries(self, entries: tuple[LegendEntry, ...]) -> None:
        """Show these entries; what is switched off stays so."""
        if entries == self._entries:
            return
        hidden = self.hidden
        for button in self._buttons:
            self._flow.removeWidget(button)
            button.deleteLater()
        self._entries = entries
        self._buttons = [LegendButton(self._theme, entry) for entry in entries]
        for button in self._buttons:
            button.setChecked(button.entry.key not in hidden)
            button.toggled.connect(self._tell)
            button.alone_wanted.connect(partial(self.show_only, button.entry.key))
            self._flow.addWidget(button)

    @Slot()
    def show_only(self, key: Hashable) -> None:
        """Switch all others off, or all on where they are already off."""
        others = [button for button in self._buttons if button.entry.key != key]
        were_off = not any(button.isChecked() for button in others)
        for button in self._buttons:
            button.blockSignals(True)
            button.setChecked(were_off or button.entry.key == key)
            button.blockSignals(False)
        self._tell()

    @Slot()
    def _tell(self) -> None:
        self.toggled.emit(self.hidden)


class LegendButton(QAbstractButton):
    """A piece of the curve and its name; switched off it is pale."""

    alone_wanted = Signal()

    def __init__(self, theme: Theme, entry: LegendEntry) -> None:
        super().__init__()
        self._theme, self.entry = theme, entry
        self.setCheckable(True)
        self.setChecked(True)
        self.setText(entry.title)
        self.setAccessibleName(entry.title)
        self.setToolTip("Click to hide or show; double-click to show it alone")
        self.setFont(theme.font("small"))

    def sizeHint(self) -> QSize:
        """Return the room for the piece and the name."""
        metrics = QFontMetrics(self.font())
        gaps = 2 * self._theme.spacing.tiny
        return QSize(_SWATCH + metrics.horizontalAdvance(self.text()) + 2 * gaps, metrics.height() + gaps)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Ask to be shown alone; the first click of the two has switched it off."""
        if event.button() == Qt.MouseButton.LeftButton:
            self.blockSignals(True)
            self.toggle()
            self.blockSignals(False)
            self.alone_wanted.emit()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the piece and the name."""
        painter = QPainter(self)
        tiny = self._theme.spacing.tiny
        if self.hasFocus():
            painter.setPen(self._theme.color("focus"))
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))
        pen = stroke(self._theme, self.entry.stroke, 2)
        if not self.isChecked():
            pen.setColor(self._theme.color("border"))
        painter.setPen(pen)
        middle = self.height() // 2
        painter.drawLine(tiny, middle, tiny + _SWATCH, middle)
        painter.setPen(self._theme.color("text" if self.isChecked() else "muted"))
        words = self.rect().adjusted(3 * tiny + _SWATCH, 0, 0, 0)
        painter.drawText(words, Qt.AlignmentFlag.AlignVCenter, self.text())
