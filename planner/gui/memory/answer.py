"""The answer: whether it fits, why, and what to know about it."""

from typing import Final

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from planner.gui.theme import Theme, mark
from planner.gui.widgets.label import make_label
from planner.gui.widgets.verdict_badge import verdict_mark
from planner.memory.result import Verdict
from planner.present import format as fmt
from planner.present.memory import MemoryView

_NOTES_SHOWN: Final = 2
_MARK_SCALE: Final = 1.5


class Answer(QWidget):
    """A sentence with the verdict's mark, the reason under it, and notes; many notes are folded."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._verdict: Verdict | None = None
        self._notes: tuple[str, ...] = ()
        self._mark = QLabel()
        self._sentence = _selectable(make_label(font=theme.font("title", bold=True), wrap=True))
        self._reason = _selectable(make_label(wrap=True))
        self._note_lines = _selectable(make_label(role="muted", font=theme.font("small"), wrap=True))
        self._more = QPushButton()
        mark(self._more, "link")
        self._more.setFont(theme.font("small"))
        self._lay_out()
        self._more.clicked.connect(self._show_all_notes)
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
        self.setAccessibleName(view.answer)
        if view.notes != self._notes:
            self._notes = view.notes
            self._show_notes(_NOTES_SHOWN)
        self._dress()

    @Slot()
    def _show_all_notes(self) -> None:
        self._show_notes(len(self._notes))

    def _show_notes(self, count: int) -> None:
        hidden = len(self._notes) - count
        # One note more is no longer than the words that would offer it.
        count, hidden = (count, hidden) if hidden > 1 else (len(self._notes), 0)
        self._note_lines.setText("\n".join(self._notes[:count]))
        self._note_lines.setVisible(bool(self._notes))
        self._more.setText(f"{fmt.plural(hidden, 'more note')}")
        self._more.setVisible(hidden > 0)

    @Slot()
    def _dress(self) -> None:
        side = round(self._theme.icon_side * _MARK_SCALE)
        icon = self._theme.icon(*verdict_mark(self._verdict))
        self._mark.setPixmap(icon.pixmap(QSize(side, side), self.devicePixelRatio()))

    def _lay_out(self) -> None:
        words = QVBoxLayout()
        words.setSpacing(self._theme.spacing.tiny)
        for widget in (self._sentence, self._reason, self._note_lines):
            words.addWidget(widget)
        words.addWidget(self._more, 0, Qt.AlignmentFlag.AlignLeft)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(self._theme.spacing.small)
        layout.addWidget(self._mark, 0, Qt.AlignmentFlag.AlignTop)
        layout.addLayout(words, 1)


def _selectable(label: QLabel) -> QLabel:
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label
