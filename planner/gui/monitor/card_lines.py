"""The cards of the machine, a line each."""

from collections.abc import Mapping, Sequence
from typing import Final

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from planner.gui.monitor.card_line_widget import LEAST_ROOM, CardLineWidget, Widths
from planner.gui.theme import Theme
from planner.present.monitor.diagnosis import Said
from planner.present.monitor.headline import CardLine

# More cards than these have one line each, however narrow the window.
_MOST_TALL: Final = 4
# More lines than these are scrolled.
_MOST_SHOWN: Final = 9


class CardLines(QScrollArea):
    """All cards, instances after their card; `opened` carries the UUID of the one whose diagnosis is wanted."""

    opened = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._lines: dict[str, CardLineWidget] = {}
        self._widths = Widths()
        self._body = QWidget()
        self._column = QVBoxLayout(self._body)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self.setWidget(self._body)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self._body.update)

    @property
    def texts(self) -> tuple[str, ...]:
        """Return what each line says."""
        return tuple(line.as_text for line in self._lines.values())

    def show_cards(self, cards: Sequence[CardLine], said: Mapping[str, Said], expected: Mapping[str, float]) -> None:
        """Show these cards; `said` is what is diagnosed and `expected` the predicted share of memory, by UUID."""
        if [card.uuid for card in cards] != list(self._lines):
            self._rebuild([card.uuid for card in cards])
        self._make_room(cards)
        for card in cards:
            self._lines[card.uuid].show_line(card, said.get(card.uuid, Said()), expected.get(card.uuid))

    def sizeHint(self) -> QSize:
        """Return the height of all lines, up to as many as may be seen at once."""
        heights = [line.sizeHint().height() for line in self._lines.values()]
        return QSize(0, sum(heights[:_MOST_SHOWN]))

    def minimumSizeHint(self) -> QSize:
        """Return the height that it always has."""
        return self.sizeHint()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Move the sentences to where there is room for them."""
        super().resizeEvent(event)
        self._arrange()

    def _make_room(self, cards: Sequence[CardLine]) -> None:
        """Widen what is too narrow for a word; it stays so, for places that shrink and grow would be restless."""
        widths = self._widths
        for card in cards:
            widths = widths.with_room_for(card, self._theme, self)
        if widths != self._widths:
            self._widths = widths
            self._arrange()

    def _rebuild(self, uuids: Sequence[str]) -> None:
        for line in self._lines.values():
            self._column.removeWidget(line)
            line.deleteLater()
        self._lines = {uuid: CardLineWidget(self._theme, number) for number, uuid in enumerate(uuids)}
        for line in self._lines.values():
            line.opened.connect(self.opened)
            self._column.addWidget(line)
        self._widths = Widths()
        self._arrange()

    def _arrange(self) -> None:
        room = self.viewport().width() - self._widths.all(self._theme.spacing.small)
        for line in self._lines.values():
            line.set_widths(self._widths)
            line.set_tall(room < LEAST_ROOM and len(self._lines) <= _MOST_TALL)
        self.updateGeometry()
