"""The answer about money: the sentence, how old its prices are, what would change it, and how long the work takes."""

from typing import Final, NamedTuple

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from planner.gui.theme import Theme, mark
from planner.gui.widgets.age_mark import AGE_ROLES
from planner.gui.widgets.label import make_label
from planner.gui.widgets.section import Section
from planner.present.cost.prices import Age

_SELECTABLE: Final = Qt.TextInteractionFlag.TextSelectableByMouse


class AnswerText(NamedTuple):
    """What is said at the top: the sentence with its origin, its dates, what follows from it, and notes."""

    sentence: str
    origin: str = ""
    dates: str = ""
    age: Age = "undated"
    lines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Return all of it, a line each."""
        told = (self.sentence, self.dates, *self.lines, *(f"- {note}" for note in self.notes))
        return "\n".join(line for line in told if line)


class Answer(QWidget):
    """A sentence, its dates, lines under it, and notes that unfold; `add` says what is found later."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._sentence = _selectable(make_label(font=theme.font("title", bold=True), wrap=True))
        self._dates = _selectable(make_label(font=theme.font("small"), wrap=True))
        self._lines = _selectable(make_label(wrap=True))
        self._note_lines = _selectable(make_label(role="muted", wrap=True))
        self._notes = Section(theme, "Notes", self._note_lines)
        self._shown = AnswerText("")
        self._later = ""
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.spacing.tiny)
        for widget in (self._sentence, self._dates, self._lines, self._notes):
            column.addWidget(widget)

    @property
    def text(self) -> str:
        """Return everything that is said."""
        return "\n".join(part for part in (self._shown.text, self._later) if part)

    @property
    def sentence(self) -> str:
        """Return the answer in one sentence."""
        return self._shown.sentence

    @property
    def age(self) -> Age:
        """Return how old the oldest price is, in a word."""
        return self._shown.age

    def show_answer(self, answer: AnswerText) -> None:
        """Show another answer."""
        self._shown, self._later = answer, ""
        self._sentence.setText(answer.sentence)
        self._sentence.setToolTip(answer.origin)
        self._dates.setText(answer.dates)
        self._dates.setVisible(bool(answer.dates))
        mark(self._dates, AGE_ROLES[answer.age])
        self._say_lines()
        self._note_lines.setText("\n".join(answer.notes))
        self._notes.set_summary(" · ".join(answer.notes))
        self._notes.setVisible(bool(answer.notes))
        self.setAccessibleName(answer.sentence)

    def add(self, sentence: str) -> None:
        """Say something more about the answer that is shown."""
        self._later = sentence
        self._say_lines()

    def _say_lines(self) -> None:
        told = (*self._shown.lines, *((self._later,) if self._later else ()))
        self._lines.setText("\n".join(told))
        self._lines.setVisible(bool(told))


def _selectable(label: QLabel) -> QLabel:
    label.setTextInteractionFlags(_SELECTABLE)
    return label
