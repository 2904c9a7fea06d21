"""Labels in one of the text roles of the theme."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QLabel

from planner.gui.theme import mark


def make_label(text: str = "", role: str = "", font: QFont | None = None, wrap: bool = False) -> QLabel:
    """Return a label of plain text; `role` is `muted`, `ok`, `warn` or `bad`."""
    label = QLabel(text, textFormat=Qt.TextFormat.PlainText, wordWrap=wrap)
    if role:
        mark(label, role)
    if font is not None:
        label.setFont(font)
    return label
