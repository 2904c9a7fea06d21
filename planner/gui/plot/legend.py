"""Clickable plot legend, and the line-breaking of legend entries."""

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from PySide6.QtCore import QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import QFontMetrics, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from planner.gui.plot.pens import series_pen
from planner.gui.theme import Theme
from planner.gui.widgets.layout import FlowLayout

_LINE_SWATCH_WIDTH: Final = 24
_SQUARE_SIZE: Final = 12


class LegendEntry(NamedTuple):
    """Legend entry: key, title and swatch of a series, which is a line, or a square or dot in a theme color.

    `accessible_name` is the name for screen readers, if it differs from the title.
    """

    key: Hashable
    title: str
    swatch: int | str
    accessible_name: str = ""
    is_round: bool = False


class Legend(QWidget):
    """Plot legend with a toggle button per series; `toggled` carries the keys of the hidden series."""

    toggled = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._entries: tuple[LegendEntry, ...] = ()
        self.buttons: tuple[LegendButton, ...] = ()
        self.hidden: frozenset[Any] = frozenset()
        self._flow = FlowLayout(theme.spacing.small)
        self.setLayout(self._flow)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def set_entries(self, entries: tuple[LegendEntry, ...]) -> None:
        """Show `entries`; hidden entries stay hidden."""
        if entries == self._entries:
            return
        for button in self.buttons:
            self._flow.removeWidget(button)
            button.deleteLater()
        self._entries = entries
        self.buttons = tuple(LegendButton(self._theme, entry) for entry in entries)
        for button in self.buttons:
            button.setChecked(button.entry.key not in self.hidden)
            button.toggled.connect(self._on_entry_toggled)
            button.alone_requested.connect(partial(self.show_only, button.entry.key))
            self._flow.addWidget(button)

    @Slot()
    def show_only(self, key: Hashable) -> None:
        """Hide all series except `key`, or show all series if only `key` is visible."""
        others = frozenset(entry.key for entry in self._entries if entry.key != key)
        hidden = frozenset[Any]() if others <= self.hidden else others
        for button in self.buttons:
            button.blockSignals(True)
            button.setChecked(button.entry.key not in hidden)
            button.blockSignals(False)
        self._on_entry_toggled()

    @Slot()
    def _on_entry_toggled(self) -> None:
        self.hidden = frozenset(button.entry.key for button in self.buttons if not button.isChecked())
        self.toggled.emit(self.hidden)


class LegendButton(QAbstractButton):
    """Swatch and name of a series, pale while the series is hidden."""

    alone_requested = Signal()

    def __init__(self, theme: Theme, entry: LegendEntry) -> None:
        super().__init__()
        self._theme, self.entry = theme, entry
        self._swatch = _LINE_SWATCH_WIDTH if isinstance(entry.swatch, int) else _SQUARE_SIZE
        self.setCheckable(True)
        self.setChecked(True)
        self.setText(entry.title)
        self.setAccessibleName(entry.accessible_name or entry.title.replace("&", ""))
        self.setToolTip("Click to hide or show this series; double-click to show only this series")
        self.setFont(theme.font("small"))

    def sizeHint(self) -> QSize:
        """Return the size of the swatch and the name."""
        metrics = QFontMetrics(self.font())
        gaps = 2 * self._theme.spacing.tiny
        return QSize(
            self._swatch + metrics.horizontalAdvance(self.text().replace("&", "")) + 2 * gaps, metrics.height() + gaps
        )

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Request that only this series is shown; undo the toggle by the first click."""
        if event.button() == Qt.MouseButton.LeftButton:
            self.blockSignals(True)
            self.toggle()
            self.blockSignals(False)
            self.alone_requested.emit()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the swatch and the name."""
        painter = QPainter(self)
        tiny = self._theme.spacing.tiny
        if self.hasFocus():
            painter.setPen(self._theme.color("focus"))
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))
        self._paint_swatch(painter, tiny)
        painter.setPen(self._theme.color("text" if self.isChecked() else "muted"))
        text_area = self.rect().adjusted(3 * tiny + self._swatch, 0, 0, 0)
        painter.drawText(text_area, Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextShowMnemonic, self.text())

    def _paint_swatch(self, painter: QPainter, left: int) -> None:
        swatch, middle = self.entry.swatch, self.height() // 2
        if isinstance(swatch, str):
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self._theme.color(swatch if self.isChecked() else "free"))
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, self.entry.is_round)
            box = QRect(left, middle - _SQUARE_SIZE // 2, _SQUARE_SIZE, _SQUARE_SIZE)
            (painter.drawEllipse if self.entry.is_round else painter.drawRect)(box)
            return
        pen = series_pen(self._theme, swatch, 2)
        if not self.isChecked():
            pen.setColor(self._theme.color("border"))
        painter.setPen(pen)
        painter.drawLine(left, middle, left + _LINE_SWATCH_WIDTH, middle)


def line_positions(widths: Sequence[float], line_width: float, gap: float) -> list[tuple[int, float]]:
    """Return the line number and left end of each legend entry, wrapped to lines of `line_width` pixels."""
    places, line, left = [], 0, 0.0
    for width in widths:
        if left and left + width > line_width:
            line, left = line + 1, 0.0
        places.append((line, left))
        left += width + gap
    return places
