"""The diagnosis of one card in full, and what to optimise next; both can be copied."""

from typing import Final

from PySide6.QtCore import QSize, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QPlainTextEdit, QPushButton, QTabWidget, QVBoxLayout, QWidget

from planner.gui.theme import Theme
from planner.gui.widgets.label import make_label
from planner.present.diagnosis import ChecklistRow, Said, checklist_text

_SIZE: Final = QSize(720, 420)


class VerdictDialog(QDialog):
    """Says what was found of a card, what was seen, and what to try; and what there is to optimise at all."""

    def __init__(
        self, card: str, found: Said, checklist: tuple[ChecklistRow, ...], theme: Theme, parent: QWidget
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("Diagnosis of {0}").format(card))
        self._sentence = make_label(found.sentence, font=theme.font(bold=True), wrap=True)
        self.text = QPlainTextEdit(found.details, readOnly=True)
        self.text.setAccessibleName(self.tr("What was seen, and what to try"))
        self.checklist = QPlainTextEdit(checklist_text(checklist), readOnly=True)
        self.checklist.setAccessibleName(self.tr("What to optimise next"))
        self.pages = QTabWidget()
        self.pages.addTab(self.text, self.tr("What was &seen"))
        self.pages.addTab(self.checklist, self.tr("What to optimise &next"))
        self._copy = QPushButton(self.tr("&Copy"))
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.addButton(self._copy, QDialogButtonBox.ButtonRole.ActionRole)
        buttons.rejected.connect(self.close)
        layout = QVBoxLayout(self)
        layout.setSpacing(theme.spacing.small)
        layout.addWidget(self._sentence)
        layout.addWidget(self.pages, 1)
        layout.addWidget(buttons)
        self.resize(_SIZE)
        self._copy.clicked.connect(self._copy_text)

    @Slot()
    def _copy_text(self) -> None:
        parts = (self._sentence.text(), self.text.toPlainText(), self.checklist.toPlainText())
        QGuiApplication.clipboard().setText("\n\n".join(part for part in parts if part))
