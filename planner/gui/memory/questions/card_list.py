"""Editable list of several kinds of cards with the number of cards of each kind."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from planner.gui.choices import card_choices, selected_card_name
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import IconButton
from planner.gui.widgets.inputs.choice_field import PickerField
from planner.gui.widgets.inputs.field import message_line, show_message
from planner.gui.widgets.inputs.number_field import NumberField
from planner.gui.workspace import Workspace
from planner.workload.parallel import CardCount

_NUMBER_WIDTH = 64


class CardList(QWidget):
    """Editable list of card kinds; `edited` carries the new list, `finished` ends the editing gesture."""

    edited = Signal(object)
    finished = Signal()

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self._workspace, self._theme = workspace, theme
        self._cards: tuple[CardCount, ...] = ()
        self.rows: list[CardCountRow] = []
        self._message = message_line()
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(theme.spacing.tiny)
        self._column.addWidget(self._message)

    @property
    def cards(self) -> tuple[CardCount, ...]:
        """Return the shown kinds of cards with their numbers."""
        return self._cards

    def set_cards(self, cards: Sequence[CardCount]) -> None:
        """Show `cards`; existing rows are reused, so that the focus is kept."""
        self._cards = tuple(cards)
        self.show_problem("")
        while len(self.rows) > len(self._cards):
            row = self.rows.pop()
            self._column.removeWidget(row)
            row.setParent(None)
            row.deleteLater()
        while len(self.rows) < len(self._cards):
            self._add_card_row()
        for row, kind in zip(self.rows, self._cards, strict=True):
            row.show_kind(kind)

    def show_problem(self, message: str) -> None:
        """Show below the list why the listed cards are not allowed."""
        show_message(self._message, message)

    def add(self, gpu_id: str) -> None:
        """Add one card of the kind `gpu_id`."""
        positions = [row_index for row_index, kind in enumerate(self._cards) if kind.id == gpu_id]
        if positions:
            self._emit_changed_row(positions[0], count=self._cards[positions[0]].count + 1)
        else:
            self.edited.emit((*self._cards, CardCount(id=gpu_id)))
        self.finished.emit()

    def _add_card_row(self) -> None:
        row_index = len(self.rows)
        row = CardCountRow(self._workspace, self._theme, row_index)
        row.card.edited.connect(lambda gpu_id: self._emit_changed_row(row_index, id=gpu_id))
        row.number.edited.connect(lambda count: self._emit_changed_row(row_index, count=count))
        row.remove.clicked.connect(partial(self._emit_without_row, row_index))
        for field in (row.card, row.number):
            field.finished.connect(self.finished)
        self.rows.append(row)
        self._column.insertWidget(row_index, row)

    def _emit_changed_row(self, row_index: int, **changes: object) -> None:
        changed = self._cards[row_index].evolve(**changes)
        self.edited.emit((*self._cards[:row_index], changed, *self._cards[row_index + 1 :]))

    def _emit_without_row(self, row_index: int) -> None:
        self.edited.emit((*self._cards[:row_index], *self._cards[row_index + 1 :]))
        self.finished.emit()


class CardCountRow(QWidget):
    """Row with a kind of card, the number of cards, and a button to remove the row."""

    def __init__(self, workspace: Workspace, theme: Theme, row_index: int) -> None:
        super().__init__()
        self.card = PickerField(
            theme, lambda: card_choices(workspace), lambda value: selected_card_name(workspace, value), "Search cards"
        )
        self.number = NumberField(1, 100_000)
        self.number.setFixedWidth(_NUMBER_WIDTH)
        self.remove = IconButton(theme, "close", "Remove these cards")
        self.card.set_name(f"Cards, kind {row_index + 1}")
        self.number.set_name(f"Number of cards of kind {row_index + 1}")
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.spacing.tiny)
        layout.addWidget(self.card, 1, Qt.AlignmentFlag.AlignTop)
        layout.addWidget(self.number, 0, Qt.AlignmentFlag.AlignTop)
        layout.addWidget(self.remove, 0, Qt.AlignmentFlag.AlignTop)

    def show_kind(self, kind: CardCount) -> None:
        """Show the card and the number in `kind`."""
        self.card.set_value(kind.id)
        self.number.set_value(kind.count)
