"""The list of the machine's cards: a line for each card with its readings and its diagnosis."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

from PySide6.QtCore import QRect, QSize, Qt, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QFontMetrics,
    QKeyEvent,
    QMouseEvent,
    QPaintDevice,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from planner.gui.theme import Theme
from planner.gui.widgets.layout import ScrollColumn, in_column
from planner.present.monitor.diagnosis import DiagnosisView
from planner.present.monitor.headline import CardLine

LEAST_ROOM: Final = 260
"""Pixels that a diagnosis needs at the end of a card's line; with less room it moves to a second line."""
_SERIES: Final = 8
_USE, _MEMORY, _POWER, _HEAT, _CLOCK = 72, 150, 92, 50, 80
_LEAST_NAME, _MOST_NAME, _LEAST_STATE, _MOST_STATE = 90, 260, 40, 200
_CHEVRON: Final = 16
_BAR: Final = 4
_EXPECTED_WIDTH: Final = 2
_KEYS: Final = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)
_LEFT: Final = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT: Final = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_NOTHING: Final = DiagnosisView()
# With more cards than this, each has a single line however narrow the window is.
_MOST_TALL: Final = 4
# More lines than this scroll.
_MOST_SHOWN: Final = 9


class ColumnWidths(NamedTuple):
    """Widths in pixels of the name and the state columns, which fit the longest texts of all lines."""

    name: int = _LEAST_NAME
    state: int = _LEAST_STATE

    def widened_for(self, line: CardLine, theme: Theme, screen: QPaintDevice) -> "ColumnWidths":
        """Return the widths, enlarged as needed to fit the texts of `line`."""
        name = QFontMetrics(theme.font(bold=True), screen).horizontalAdvance(line.name) + 1
        state = QFontMetrics(theme.font(), screen).horizontalAdvance(line.state) + 1
        return ColumnWidths(min(max(self.name, name), _MOST_NAME), min(max(self.state, state), _MOST_STATE))

    def pixels_before_diagnosis(self, gap: int) -> int:
        """Return the width of all columns before the diagnosis in pixels, with `gap` pixels between columns."""
        widths = (self.name, _USE, _MEMORY, _POWER, _HEAT, _CLOCK, self.state, _CHEVRON)
        return sum(widths) + (len(widths) + 1) * gap + 4


class CardLineWidget(QWidget):
    """Widget that shows one card in a line; `opened` carries the card's UUID when the user opens its diagnosis."""

    opened = Signal(str)

    def __init__(self, theme: Theme, number: int) -> None:
        super().__init__()
        self._theme, self._series = theme, f"series-{number % _SERIES + 1}"
        self._line: CardLine | None = None
        self._diagnosis = _NOTHING
        self._expected: float | None = None
        self._widths = ColumnWidths()
        self._is_tall = False
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    @property
    def as_text(self) -> str:
        """Return the card's readings and diagnosis as text."""
        spoken = "" if self._line is None else self._line.spoken
        return f"{spoken}. {self._diagnosis.sentence}".strip(". ")

    def show_line(self, line: CardLine, diagnosis: DiagnosisView = _NOTHING, expected: float | None = None) -> None:
        """Show a card's readings and diagnosis; `expected` is the memory fraction that the plan predicts."""
        if (line, diagnosis, expected) == (self._line, self._diagnosis, self._expected):
            return
        self._line, self._diagnosis, self._expected = line, diagnosis, expected
        self.setAccessibleName(self.as_text)
        mark = "" if expected is None else "The mark at the memory bar is the plan's prediction."
        self.setToolTip("\n".join(part for part in (diagnosis.sentence, diagnosis.details, line.tooltip, mark) if part))
        self.update()

    def set_widths(self, widths: ColumnWidths) -> None:
        """Set the widths of the name and the state columns."""
        if widths != self._widths:
            self._widths = widths
            self.update()

    def set_tall(self, is_tall: bool) -> None:
        """Show the diagnosis below the readings (`is_tall`) or after them on the same line."""
        if is_tall != self._is_tall:
            self._is_tall = is_tall
            self.updateGeometry()
            self.update()

    def sizeHint(self) -> QSize:
        """Return the height of the widget: one text line, or two with the diagnosis below the readings."""
        return QSize(0, self._values_height() + (self._sentence_height() if self._is_tall else 0))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the readings and the diagnosis."""
        if self._line is None:
            return
        painter = QPainter(self)
        if self.hasFocus() or self.underMouse():
            painter.fillRect(self.rect(), self._theme.color("hover"))
        self._paint_values(painter, self._line)
        painter.end()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Open the diagnosis on a click."""
        if self._line is not None and self.rect().contains(event.position().toPoint()):
            self.opened.emit(self._line.uuid)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Open the diagnosis with Return or Space; move between cards with the arrow keys."""
        if event.key() in _KEYS and self._line is not None:
            self.opened.emit(self._line.uuid)
        elif event.key() in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            self.focusNextPrevChild(event.key() == Qt.Key.Key_Down)
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Repaint the line with the background of a focused line."""
        super().focusInEvent(event)
        self.update()

    def _paint_values(self, painter: QPainter, line: CardLine) -> None:
        gap, height = self._theme.spacing.small, self._values_height()
        painter.fillRect(QRect(2, (height - 12) // 2, 3, 12), self._theme.color(self._series))
        left = gap + 4
        self._paint_text(painter, QRect(left, 0, self._widths.name, height), line.name, "text", bold=True)
        left += self._widths.name + gap
        self._paint_text_with_bar(painter, QRect(left, 0, _USE, height), line.use, line.use_share)
        left += _USE + gap
        area = QRect(left, 0, _MEMORY, height)
        self._paint_text_with_bar(painter, area, line.memory, line.memory_share, self._expected)
        left += _MEMORY + gap
        for text, width in ((line.power, _POWER), (line.temperature, _HEAT), (line.clock, _CLOCK)):
            self._paint_text(painter, QRect(left, 0, width, height), text or "–", "text" if text else "muted", _RIGHT)
            left += width + gap
        left += gap
        self._paint_text(painter, QRect(left, 0, self._widths.state, height), line.state, line.tone or "text")
        self._paint_sentence(painter, left + self._widths.state + gap)
        chevron = self._theme.icon("chevron-right", "muted")
        chevron.paint(painter, QRect(self.width() - _CHEVRON, 0, _CHEVRON, height))

    def _paint_sentence(self, painter: QPainter, left: int) -> None:
        """Paint the diagnosis below the readings, or from x position `left` on, shortened to its title if too long."""
        tone, height = self._diagnosis.tone or "muted", self._values_height()
        if self._is_tall:
            indent = self._theme.spacing.small + 4
            below = QRect(indent, height - 2, self.width() - indent, self._sentence_height())
            self._paint_text(painter, below, self._diagnosis.sentence, tone)
        else:
            room = self.width() - left - _CHEVRON
            fits = QFontMetrics(self._theme.font(), self).horizontalAdvance(self._diagnosis.sentence) <= room
            words = self._diagnosis.sentence if fits else self._diagnosis.title
            self._paint_text(painter, QRect(left, 0, room, height), words, tone)

    def _paint_text(
        self,
        painter: QPainter,
        area: QRect,
        text: str,
        role: str,
        alignment: Qt.AlignmentFlag = _LEFT,
        bold: bool = False,
    ) -> None:
        painter.setFont(self._theme.font(bold=bold))
        painter.setPen(self._theme.color(role))
        shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, area.width())
        painter.drawText(area, alignment, shown)

    def _paint_text_with_bar(
        self, painter: QPainter, area: QRect, text: str, share: float | None, expected: float | None = None
    ) -> None:
        self._paint_text(painter, area.adjusted(0, 0, 0, -_BAR), text or "–", "text" if text else "muted", _RIGHT)
        track = QRect(area.left(), area.bottom() - _BAR - 1, area.width(), _BAR)
        if share is not None:
            painter.fillRect(track, self._theme.color("hover"))
            filled = QRect(track.left(), track.top(), round(track.width() * share), _BAR)
            painter.fillRect(filled, self._theme.color(self._series))
        if expected is not None:
            at = track.left() + round((track.width() - _EXPECTED_WIDTH) * min(expected, 1.0))
            painter.fillRect(QRect(at, track.top() - 3, _EXPECTED_WIDTH, _BAR + 4), self._theme.color("text"))

    def _values_height(self) -> int:
        return self.fontMetrics().height() + 2 * _BAR + 4

    def _sentence_height(self) -> int:
        return self.fontMetrics().height() + 2


class CardLines(ScrollColumn):
    """List with a line for each card; `opened` carries the UUID of the card whose diagnosis the user opens."""

    opened = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._lines: dict[str, CardLineWidget] = {}
        self._widths = ColumnWidths()
        self._body = QWidget()
        self._column = in_column(owner=self._body, spacing=0)
        self.setWidget(self._body)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self._body.update)

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the readings and the diagnosis of each card as text."""
        return tuple(line.as_text for line in self._lines.values())

    def show_cards(
        self, cards: Sequence[CardLine], diagnoses: Mapping[str, DiagnosisView], expected: Mapping[str, float]
    ) -> None:
        """Show the cards; `diagnoses` and `expected`, the memory fractions that the plan predicts, are by UUID."""
        if [card.uuid for card in cards] != list(self._lines):
            self._replace_lines([card.uuid for card in cards])
        self._widen_columns(cards)
        for card in cards:
            self._lines[card.uuid].show_line(card, diagnoses.get(card.uuid, DiagnosisView()), expected.get(card.uuid))

    def sizeHint(self) -> QSize:
        """Return the height of all lines, at most of nine; further lines are reached by scrolling."""
        heights = [line.sizeHint().height() for line in self._lines.values()]
        return QSize(0, sum(heights[:_MOST_SHOWN]))

    def minimumSizeHint(self) -> QSize:
        """Return the same size as `sizeHint`, so that the layout does not shrink the list."""
        return self.sizeHint()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Move the diagnoses below or after the readings, as the new width requires."""
        super().resizeEvent(event)
        self._lay_out_lines()

    def _widen_columns(self, cards: Sequence[CardLine]) -> None:
        """Widen the name and state columns to fit the cards' texts; columns never shrink, to avoid flicker."""
        widths = self._widths
        for card in cards:
            widths = widths.widened_for(card, self._theme, self)
        if widths != self._widths:
            self._widths = widths
            self._lay_out_lines()

    def _replace_lines(self, uuids: Sequence[str]) -> None:
        """Create a line for each card; a card that keeps its position keeps its line."""
        lines: dict[str, CardLineWidget] = {}
        for position, (before, uuid) in enumerate(zip_longest(self._lines, uuids)):
            if before == uuid:
                lines[uuid] = self._lines[uuid]
                continue
            if before is not None:
                self._column.removeWidget(self._lines[before])
                self._lines[before].deleteLater()
            if uuid is not None:
                lines[uuid] = CardLineWidget(self._theme, position)
                lines[uuid].opened.connect(self.opened)
                self._column.insertWidget(position, lines[uuid])
        self._lines = lines
        self._widths = ColumnWidths()
        self._lay_out_lines()

    def _lay_out_lines(self) -> None:
        room = self.viewport().width() - self._widths.pixels_before_diagnosis(self._theme.spacing.small)
        for line in self._lines.values():
            line.set_widths(self._widths)
            line.set_tall(room < LEAST_ROOM and len(self._lines) <= _MOST_TALL)
        self.updateGeometry()
