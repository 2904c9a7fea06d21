"""The diagnosis of one card in full, and what to optimise next; both can be copied."""

from typing import Final

from PySide6.QtCore import QSize, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QPushButton, QTextBrowser, QVBoxLayout, QWidget

from planner.gui.monitor.verdict_html import verdict_html
from planner.gui.theme import Theme
from planner.gui.widgets.closing_buttons import closing_buttons
from planner.gui.widgets.label import make_label
from planner.present.monitor.diagnosis import ChecklistRow, Said, checklist_text

_SIZE: Final = QSize(820, 600)


class VerdictDialog(QDialog):
    """Says what was found of a card, what was seen, and what to try; and what there is to optimise at all."""

    def __init__(
        self, card: str, found: Said, checklist: tuple[ChecklistRow, ...], theme: Theme, parent: QWidget
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle(f"Diagnosis of {card}")
        self._copied = "\n\n".join(part for part in (found.sentence, found.details, checklist_text(checklist)) if part)
        sentence = make_label(found.sentence, font=theme.font("title", bold=True), wrap=True)
        self.text = QTextBrowser()
        self.text.setHtml(verdict_html(found, checklist, theme))
        self.text.setAccessibleName("What was seen, what to try, and what to optimise next")
        self._copy = QPushButton("&Copy")
        buttons = closing_buttons(self, self._copy)
        layout = QVBoxLayout(self)
        layout.setSpacing(theme.spacing.small)
        layout.addWidget(make_label(card, "muted"))
        layout.addWidget(sentence)
        layout.addWidget(self.text, 1)
        layout.addWidget(buttons)
        self.resize(_SIZE)
        self._copy.clicked.connect(self._copy_text)

    @Slot()
    def _copy_text(self) -> None:
        QGuiApplication.clipboard().setText(self._copied)
