"""The answer: whether it fits, why, and what to know about it."""

from typing import Final

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from planner.gui.theme import Theme, mark
from planner.gui.widgets.label import make_label
from planner.gui.widgets.section import Section
from planner.gui.widgets.verdict_badge import verdict_mark
from planner.memory.result import Verdict
from planner.present.memory.view import MemoryView

_MARK_SCALE: Final = 1.5


class Answer(QWidget):
    """A sentence with the verdict's mark, under it the reason and how sure that is, and notes that unfold."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._verdict: Verdict | None = None
        self._mark = QLabel()
        self._sentence = _selectable(make_label(font=theme.font("title", bold=True), wrap=True))
        self._reason = _selectable(make_label(wrap=True))
        self._certainty = _selectable(make_label(role="muted", wrap=True))
        self._note_lines = _selectable(make_label(role="muted", wrap=True))
        self._notes = Section(theme, "Notes", self._note_lines)
        self._lay_out()
        theme.changed.connect(self._dress)

    @property
    def sentence(self) -> str:
        """Return the sentence that is shown."""
        return self._sentence.text()

    def set_view(self, view: MemoryView, verdict: Verdict | None) -> None:
        """Show another result."""
        self._verdict = verdict if view.supported else "does-not-fit"
        self._sentence.setText(view.answer)
        self._reason.setText(view.reason)
        self._reason.setVisible(bool(view.reason))
        self._certainty.setText(view.certainty)
        self._certainty.setVisible(bool(view.certainty))
        self._note_lines.setText("\n".join(view.notes))
        self._notes.set_summary(" · ".join(view.notes))
        self._notes.setVisible(bool(view.notes))
        self.setAccessibleName(f"{view.answer} {view.certainty}".strip())
        self._dress()

    def set_outdated(self, outdated: bool) -> None:
        """Write the answer paler while a newer one is on its way."""
        for label in (self._sentence, self._reason):
            mark(label, "muted" if outdated else "")

    @Slot()
    def _dress(self) -> None:
        side = round(self._theme.icon_side * _MARK_SCALE)
        icon = self._theme.icon(*verdict_mark(self._verdict))
        self._mark.setPixmap(icon.pixmap(QSize(side, side), self.devicePixelRatio()))

    def _lay_out(self) -> None:
        words = QVBoxLayout()
        words.setSpacing(self._theme.spacing.tiny)
        for widget in (self._sentence, self._reason, self._certainty, self._notes):
            words.addWidget(widget)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(self._theme.spacing.small)
        layout.addWidget(self._mark, 0, Qt.AlignmentFlag.AlignTop)
        layout.addLayout(words, 1)


def _selectable(label: QLabel) -> QLabel:
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label
