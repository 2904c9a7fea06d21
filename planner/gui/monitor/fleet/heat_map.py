"""Heat map of a fleet: a strip of cells for each host, a cell for each card, colored by one quantity."""

from collections.abc import Mapping, Sequence
from typing import Final

from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QScrollArea, QSizePolicy, QToolTip, QWidget

from planner.gui.theme import Theme
from planner.present.fleet import HEATS, FleetRow, Heat, card_number
from planner.present.monitor.readings import NO_VALUE, short_card_name

_LARGEST: Final = 26
_SMALLEST: Final = 9
_GAP: Final = 2
_BLOCK_GAP: Final = 14
_LABEL_LETTERS: Final = 10
_TONES: Final[Mapping[str, str]] = {"bad": "bad", "warn": "warn", "ok": "ok", "muted": "hover", "": "hover"}
_SEARCHED_OUT: Final = 0.18


class HeatMap(QWidget):
    """The cards of a fleet as cells; `opened` carries the key of a card that was clicked or confirmed with Enter.

    The arrow keys move from card to card. Cells are as large as the height allows, and never too small to click; what
    does not fit is scrolled by the area around.
    """

    opened = Signal(str)
    placed = Signal()
    """Emitted when the cells are placed anew, so that `largest_height` may have changed."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme, self._heat = theme, HEATS[0]
        self._hosts: tuple[tuple[str, tuple[FleetRow, ...]], ...] = ()
        self._found: frozenset[str] | None = None
        self._most = 1.0
        self._cells: dict[str, QRect] = {}
        self._labels: list[tuple[str, QRect]] = []
        self._rows: dict[str, FleetRow] = {}
        self._width = -1
        self._current: str | None = None
        self._area_height = 0
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Heat map of the GPUs")
        self.setToolTip("Click a GPU to see its past")
        theme.changed.connect(self.update)

    def show_rows(self, rows: Sequence[FleetRow], found: frozenset[str] | None) -> None:
        """Show the cards, those that are not among the keys `found` faintly (None: all are)."""
        hosts: dict[str, list[FleetRow]] = {}
        for row in rows:
            hosts.setdefault(row.card.host, []).append(row)
        before = [(host, len(cards)) for host, cards in self._hosts]
        self._hosts = tuple((host, tuple(cards)) for host, cards in hosts.items())
        self._rows = {row.card.key: row for row in rows}
        self._found = found
        if before != [(host, len(cards)) for host, cards in self._hosts] or self._cells.keys() != self._rows.keys():
            self._place()
        self._set_most()
        self.update()

    def show_heat(self, heat: Heat) -> None:
        """Color the cells by another quantity."""
        self._heat = heat
        self._set_most()
        self.update()

    def fit_height(self, height: int) -> None:
        """Choose the size of the cells so that they fit into this height, if they can."""
        if height != self._area_height:
            self._area_height = height
            self._place()

    @property
    def scale_texts(self) -> tuple[str, str]:
        """Return the texts of both ends of the color scale; empty for the diagnosis."""
        if self._heat.key == "diagnosis":
            return "", ""
        high = self._most if self._heat.high is None else self._heat.high
        return self._heat.text(self._heat.low), self._heat.text(high)

    def color_at(self, share: float) -> QColor:
        """Return the color of a share from 0 to 1 of the scale."""
        low, high = self._theme.color("hover"), self._theme.color("accent")
        share = min(max(share, 0.0), 1.0)
        ends = ((low.red(), high.red()), (low.green(), high.green()), (low.blue(), high.blue()))
        red, green, blue = (round(least + (most - least) * share) for least, most in ends)
        return QColor(red, green, blue)

    def sizeHint(self) -> QSize:
        """Return the width that is there, and the height of all cells."""
        bottom = max((rect.bottom() for rect in self._cells.values()), default=0)
        return QSize(self.width(), bottom + _BLOCK_GAP)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the cells and the names of their hosts."""
        painter = QPainter(self)
        metrics = self.fontMetrics()
        painter.setPen(self._theme.color("muted"))
        for host, rect in self._labels:
            painter.drawText(rect, Qt.AlignmentFlag.AlignVCenter, metrics.elidedText(host, _ELIDE, rect.width()))
        painter.setPen(Qt.PenStyle.NoPen)
        for key, rect in self._cells.items():
            row = self._rows[key]
            painter.setOpacity(1.0 if self._found is None or key in self._found else _SEARCHED_OUT)
            self._paint_cell(painter, row, rect)
        if self._current in self._cells:
            painter.setOpacity(1.0)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(self._theme.color("text"))
            painter.drawRect(self._cells[self._current].adjusted(-1, -1, 0, 0))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Place the cells anew if the width has changed."""
        super().resizeEvent(event)
        if self.width() != self._width:
            self._width = self.width()
            self._place()

    def event(self, event: QEvent) -> bool:
        """Show what is known of the card under the pointer."""
        if isinstance(event, QHelpEvent):
            row = self._row_at(event.pos())
            if row is not None:
                QToolTip.showText(event.globalPos(), self.text_of(row), self, self._cells[row.card.key])
                return True
        return super().event(event)

    def text_of(self, row: FleetRow) -> str:
        """Return what is known of a card as lines of text."""
        card = row.card
        readings = [f"{heat.title}: {_value_text(heat, row)}" for heat in HEATS[:-1]]
        name = f"{card.host}, GPU {card_number(card)}: {short_card_name(card.device)}"
        return "\n".join(filter(None, (name, *readings, row.diagnosis, row.work)))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Open the card that is clicked."""
        row = self._row_at(event.position().toPoint())
        if row is not None and event.button() == Qt.MouseButton.LeftButton:
            self._current = row.card.key
            self.update()
            self.opened.emit(row.card.key)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move to another card, or open the current one."""
        keys = list(self._cells)
        place = keys.index(self._current) if self._current in self._cells else -1
        step = {Qt.Key.Key_Right: 1, Qt.Key.Key_Left: -1}.get(Qt.Key(event.key()))
        if step is not None and keys:
            self._current = keys[min(max(place + step, 0), len(keys) - 1)]
        elif event.key() in (Qt.Key.Key_Down, Qt.Key.Key_Up) and place >= 0:
            self._current = self._beside(keys[place], down=event.key() == Qt.Key.Key_Down)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and place >= 0:
            self.opened.emit(keys[place])
        else:
            super().keyPressEvent(event)
            return
        self.update()

    def _beside(self, key: str, *, down: bool) -> str:
        """Return the card below or above another."""
        here = self._cells[key]
        rows = [
            (abs(rect.top() - here.top()), other)
            for other, rect in self._cells.items()
            if rect.left() == here.left() and (rect.top() > here.top() if down else rect.top() < here.top())
        ]
        return min(rows, default=(0, key))[1]

    def _row_at(self, point: QPoint) -> FleetRow | None:
        return next((self._rows[key] for key, rect in self._cells.items() if rect.contains(point)), None)

    def _paint_cell(self, painter: QPainter, row: FleetRow, rect: QRect) -> None:
        if self._heat.key == "diagnosis":
            painter.fillRect(rect, self._theme.color(_TONES[row.tone]))
        else:
            value = self._heat.value(row.card)
            if value is None:
                painter.fillRect(rect, self._theme.color("sunken"))
            else:
                span = (self._most if self._heat.high is None else self._heat.high) - self._heat.low
                painter.fillRect(rect, self.color_at((value - self._heat.low) / span))
        if row.card.is_silent:
            # A cross, so that a silent card is seen without colors too.
            painter.setPen(self._theme.color("bad"))
            inner = rect.adjusted(2, 2, -2, -2)
            painter.drawLine(inner.topLeft(), inner.bottomRight())
            painter.drawLine(inner.topRight(), inner.bottomLeft())
            painter.setPen(Qt.PenStyle.NoPen)

    def _set_most(self) -> None:
        values = (self._heat.value(row.card) for row in self._rows.values())
        self._most = max((value for value in values if value is not None), default=1.0) or 1.0

    def _place(self) -> None:
        """Place the strips of the hosts in columns, with the largest cells that fit."""
        self._cells, self._labels = {}, []
        if not self._hosts or self.width() <= 0:
            return
        label = self._label_width
        for side in range(_LARGEST, _SMALLEST - 1, -1):
            block, lines = self._strips(side, label)
            if lines * (side + 2 * _GAP) + _BLOCK_GAP <= self._area_height or side == _SMALLEST:
                break
        for place, (host, cards) in enumerate(self._hosts):
            column, line = divmod(place, lines)
            x, y = column * block, line * (side + 2 * _GAP) + _GAP
            self._labels.append((host, QRect(x, y, label - _GAP, side)))
            for number, row in enumerate(cards):
                self._cells[row.card.key] = QRect(x + label + number * (side + _GAP), y, side, side)
        self.setFixedHeight(self.sizeHint().height())
        self.update()
        self.placed.emit()

    @property
    def largest_height(self) -> int:
        """Return the height with the largest cells."""
        _, lines = self._strips(_LARGEST, self._label_width)
        return lines * (_LARGEST + 2 * _GAP) + _BLOCK_GAP

    @property
    def _label_width(self) -> int:
        return self.fontMetrics().horizontalAdvance("0") * _LABEL_LETTERS

    def _strips(self, side: int, label: int) -> tuple[int, int]:
        """Return the width of a column of strips with cells of `side`, and the number of lines."""
        block = label + max(len(cards) for _, cards in self._hosts) * (side + _GAP) + _BLOCK_GAP
        return block, -(-len(self._hosts) // max(1, self.width() // block))


class MapArea(QScrollArea):
    """Area of a heat map, which fits its cells into it and is scrolled only if they would be too small."""

    def __init__(self, heat_map: HeatMap) -> None:
        super().__init__(widgetResizable=True)
        self._map = heat_map
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidget(heat_map)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the cells into the new height."""
        super().resizeEvent(event)
        self._map.fit_height(self.viewport().height())


_ELIDE: Final = Qt.TextElideMode.ElideMiddle


def _value_text(heat: Heat, row: FleetRow) -> str:
    value = heat.value(row.card)
    return NO_VALUE if value is None else heat.text(value)


class HeatScale(QWidget):
    """Legend of the heat map: its colors from low to high, or the tones of the diagnosis."""

    def __init__(self, theme: Theme, heat_map: HeatMap) -> None:
        super().__init__()
        self._theme, self._map = theme, heat_map
        self.setFixedHeight(self.fontMetrics().height() + 2 * _GAP)
        self.setMinimumWidth(_SCALE_WIDTH)
        self.setToolTip("What the colors mean; crossed out: not read any more")
        theme.changed.connect(self.update)

    @Slot()
    def refresh(self) -> None:
        """Show the scale of the quantity that the map shows now."""
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the scale with the texts of its ends."""
        painter = QPainter(self)
        low, high = self._map.scale_texts
        metrics, height = self.fontMetrics(), self.height()
        painter.setPen(self._theme.color("muted"))
        if not high:
            x = 0
            for title, role in (
                ("well used", "ok"),
                ("idle or unknown", "hover"),
                ("warning", "warn"),
                ("error", "bad"),
            ):
                painter.fillRect(QRect(x, _GAP, height - 2 * _GAP, height - 2 * _GAP), self._theme.color(role))
                painter.drawText(QRect(x + height, 0, self.width(), height), _CENTER, title)
                x += height + metrics.horizontalAdvance(title) + _BLOCK_GAP
            return
        left = metrics.horizontalAdvance(low) + 2 * _GAP
        right = metrics.horizontalAdvance(high) + 2 * _GAP
        painter.drawText(self.rect(), _CENTER, low)
        steps = max(min(self.width(), _SCALE_WIDTH) - left - right, 1)
        for x in range(steps):
            painter.fillRect(left + x, _GAP, 1, height - 2 * _GAP, self._map.color_at(x / steps))
        painter.drawText(QRect(left + steps + 2 * _GAP, 0, self.width(), height), _CENTER, high)


_CENTER: Final = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
_SCALE_WIDTH: Final = 360
