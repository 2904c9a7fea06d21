"""Questions about the cards of the plan and the memory used by other programs."""

from collections.abc import Sequence
from functools import cached_property, partial

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from planner.errors import PlannerError
from planner.gui.choices import card_choices, selected_card_name
from planner.gui.memory.inputs import label_of, make_input, tooltip_of
from planner.gui.memory.questions import (
    bind,
    button_row,
    error_text,
    new_form,
    remembered_section,
    valid_values_text,
)
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import IconButton, link_button
from planner.gui.widgets.inputs.choice_field import PickerField
from planner.gui.widgets.inputs.field import message_line, show_message
from planner.gui.widgets.inputs.number_field import NumberField
from planner.gui.widgets.popover import SearchPopover
from planner.gui.workspace import Workspace
from planner.plan.editing import WORKLOAD, possible_counts
from planner.plan.evaluate import Evaluation
from planner.present.plan.parallel import cards_phrase
from planner.present.plan.settings import setting_title, title_in_sentence
from planner.workload.fields import fields_of
from planner.workload.parallel import CardCount
from planner.workload.presentation import GROUPS

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
            theme, lambda: card_choices(workspace), lambda value: selected_card_name(workspace, value), "Search GPUs"
        )
        self.number = NumberField(1, 100_000)
        self.number.setFixedWidth(_NUMBER_WIDTH)
        self.remove = IconButton(theme, "close", "Remove these GPUs")
        self.card.set_name(f"GPUs, kind {row_index + 1}")
        self.number.set_name(f"Number of GPUs of kind {row_index + 1}")
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


_LIST_WIDTH = 560
_COUNT = title_in_sentence(setting_title("count"))


class CardsQuestions(QWidget):
    """Form for the card and the number of cards, or a list of card kinds, and the memory used by other programs."""

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self._workspace, self._theme = workspace, theme
        self.card = PickerField(
            theme, lambda: card_choices(workspace), lambda value: selected_card_name(workspace, value), "Search GPUs"
        )
        self.count = NumberField(1, 100_000)
        self.unequal = CardList(workspace, theme)
        others = fields_of("inference")["other_processes_bytes"]
        self.others = make_input(others, theme, workspace)
        self.add = link_button(
            "Add &another kind…",
            "Plan for different GPUs in one machine.",
        )
        self._form = form = new_form(theme)
        form.add("GPU", self.card, hint="The GPU that trains or runs the model.")
        form.add(
            "&Number of GPUs",
            self.count,
            lambda: 1,
            "If the model fits on one GPU, each GPU holds a full copy; otherwise they share it.",
        )
        form.add_across(self.unequal)
        form.add_below(button_row(self.add))
        form.add(label_of(others), self.others, lambda: others.default, tooltip_of(others))
        self._section = remembered_section(workspace, theme, GROUPS["cards"], form)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._section)
        bind(workspace, self.card, lambda value: workspace.answer("GPU", {"gpu": value}))
        bind(
            workspace,
            self.count,
            lambda value: workspace.answer(_COUNT, {"count": value}),
            self._error_with_valid_counts,
        )
        bind(
            workspace,
            self.others,
            lambda value: workspace.answer(title_in_sentence(others.title), {f"{WORKLOAD}{others.name}": value}),
        )
        self.unequal.edited.connect(self._apply_cards)
        self.unequal.finished.connect(workspace.end_gesture)
        self.add.clicked.connect(self._open_card_list)

    def refresh(self, evaluation: Evaluation) -> None:
        """Show the cards of the plan."""
        plan = evaluation.plan
        unequal = bool(plan.workload.gpus)
        self.card.set_value(plan.gpu)
        self.count.set_value(plan.count)
        self.others.set_value(plan.workload.other_processes_bytes)
        self.unequal.set_cards(plan.workload.gpus)
        self.unequal.setVisible(unequal)
        for field in (self.card, self.count):
            self._form.set_row_visible(field, not unequal)
        self.add.setVisible(evaluation.traced is None and (unequal or plan.gpu is not None))
        name = None if plan.gpu is None else selected_card_name(self._workspace, plan.gpu)
        self._section.set_marked(self._form.differs)
        words = cards_phrase(plan.workload, plan.count, name, self._workspace.catalog.hardware)
        self._section.set_summary(words or selected_card_name(self._workspace, None))

    def _error_with_valid_counts(self, error: PlannerError) -> str:

        before = self._workspace.before(_COUNT)
        possible = possible_counts(before, self.count.value or 1, self._workspace.catalog)
        return f"{error_text(error)} {valid_values_text(possible)}"

    @cached_property
    def _card_popover(self) -> SearchPopover:
        popover = SearchPopover(self, self._theme, "Search GPUs")
        popover.chosen.connect(self._add_card_kind)
        return popover

    @Slot()
    def _open_card_list(self) -> None:
        self._card_popover.offer(self.add, card_choices(self._workspace), width=_LIST_WIDTH)

    @Slot(object)
    def _add_card_kind(self, gpu_id: object) -> None:
        plan = self._workspace.plan
        if not plan.workload.gpus and plan.gpu is not None:
            self.unequal.set_cards((CardCount(id=plan.gpu, count=plan.count),))
        self.unequal.add(str(gpu_id))

    @Slot(object)
    def _apply_cards(self, cards: tuple[CardCount, ...]) -> None:
        """Apply `cards` to the plan; a single kind becomes the plan's card."""
        answer: dict[str, object] = {"count": sum(kind.count for kind in cards)}
        answer |= {"gpu": cards[0].id} if len(cards) == 1 else {"gpu": None, "workload.gpus": cards}
        try:
            self._workspace.answer("GPUs", answer)
        except PlannerError as error:
            self.unequal.setVisible(True)
            self.unequal.show_problem(error_text(error))
