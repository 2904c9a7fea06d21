"""The answer about money: the sentence, what would change it, how long it takes, and what both ways come to."""

from typing import Final, NamedTuple

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from planner.gui.theme import Theme
from planner.gui.widgets.label import make_label
from planner.gui.widgets.section import Section

_SELECTABLE: Final = Qt.TextInteractionFlag.TextSelectableByMouse


class AnswerText(NamedTuple):
    """What is said at the top: the sentence, what follows from it, how sure it is, and notes."""

    sentence: str
    lines: tuple[str, ...]
    muted: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return all of it, a line each."""
        return "\n".join((self.sentence, *self.lines, *self.muted, *(f"- {note}" for note in self.notes)))


class Answer(QWidget):
    """A sentence, lines under it, and notes that unfold; `add_muted` adds what is found later."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._sentence = _selectable(make_label(font=theme.font("title", bold=True), wrap=True))
        self._lines = _selectable(make_label(wrap=True))
        self._muted = _selectable(make_label(role="muted", wrap=True))
        self._note_lines = _selectable(make_label(role="muted", wrap=True))
        self._notes = Section(theme, self.tr("Notes"), self._note_lines)
        self._shown = AnswerText("", (), (), ())
        self._later = ""
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.spacing.tiny)
        for widget in (self._sentence, self._lines, self._muted, self._notes):
            column.addWidget(widget)

    @property
    def text(self) -> str:
        """Return everything that is said."""
        return "\n".join(part for part in (self._shown.text, self._later) if part)

    def show_answer(self, answer: AnswerText) -> None:
        """Show another answer."""
        self._shown, self._later = answer, ""
        self._sentence.setText(answer.sentence)
        self._lines.setText("\n".join(answer.lines))
        self._lines.setVisible(bool(answer.lines))
        self._say_muted()
        self._note_lines.setText("\n".join(answer.notes))
        self._notes.set_summary(" · ".join(answer.notes))
        self._notes.setVisible(bool(answer.notes))
        self.setAccessibleName(answer.sentence)

    def add_muted(self, sentence: str) -> None:
        """Say something more about the answer that is shown."""
        self._later = sentence
        self._say_muted()

    def _say_muted(self) -> None:
        told = (*self._shown.muted, *((self._later,) if self._later else ()))
        self._muted.setText(" ".join(told))
        self._muted.setVisible(bool(told))


def _selectable(label: QLabel) -> QLabel:
    label.setTextInteractionFlags(_SELECTABLE)
    return label
