"""Amounts of money that open in place: formula, each symbol with value, source and date."""

from functools import partial
from html import escape
from typing import Final

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QGridLayout, QLabel, QToolButton, QVBoxLayout, QWidget

from planner.gui.theme import Theme, mark
from planner.gui.widgets.label import make_label
from planner.present.money import MoneyRow

_CELL: Final = '<td style="padding-right: 12px">{}</td>'


class Amounts(QWidget):
    """A heading, and a line for each amount with how sure it is; what is open stays open while the plan changes."""

    def __init__(self, theme: Theme, heading: str) -> None:
        super().__init__()
        self._theme = theme
        self._open: set[str] = set()
        self._heading = make_label(heading, font=theme.font(bold=True))
        self._lines: list[tuple[QToolButton, QLabel, QLabel, QLabel]] = []
        self._rows: tuple[MoneyRow, ...] = ()
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(theme.spacing.medium)
        self._grid.setVerticalSpacing(theme.spacing.tiny)
        self._grid.setColumnStretch(2, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.spacing.tiny)
        column.addWidget(self._heading)
        column.addLayout(self._grid)
        column.addStretch(1)
        theme.changed.connect(self._dress)

    def show_rows(self, rows: tuple[MoneyRow, ...], heading: str) -> None:
        """Show other amounts under another heading."""
        self._rows = rows
        self._heading.setText(heading)
        while len(self._lines) < len(rows):
            self._add_line()
        for number, (button, amount, sure, detail) in enumerate(self._lines):
            row = rows[number] if number < len(rows) else None
            for widget in (button, amount, sure):
                widget.setVisible(row is not None)
            detail.setVisible(row is not None and row.name in self._open)
            if row is not None:
                button.setText(row.title)
                button.setChecked(row.name in self._open)
                self._turn(button)
                button.setToolTip(row.source)
                amount.setText(row.text)
                amount.setToolTip(row.range_text)
                sure.setText(row.certainty)
                detail.setText(_detail(row, self._theme.color("muted").name()))

    def _add_line(self) -> None:
        number, place = len(self._lines), 2 * len(self._lines)
        button = QToolButton()
        button.setCheckable(True)
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        mark(button, "section")
        amount, sure = make_label(), make_label(role="muted")
        amount.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        detail = QLabel(wordWrap=True, textFormat=Qt.TextFormat.RichText)
        detail.setFont(self._theme.font("small"))
        detail.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._grid.addWidget(button, place, 0, Qt.AlignmentFlag.AlignLeft)
        self._grid.addWidget(amount, place, 1)
        self._grid.addWidget(sure, place, 2)
        self._grid.addWidget(detail, place + 1, 0, 1, 3)
        button.clicked.connect(partial(self._toggle, number))
        self._lines.append((button, amount, sure, detail))

    def _toggle(self, number: int, opened: bool) -> None:
        (self._open.add if opened else self._open.discard)(self._rows[number].name)
        self._turn(self._lines[number][0])
        self._lines[number][3].setVisible(opened)

    def _turn(self, button: QToolButton) -> None:
        button.setIcon(self._theme.icon("chevron-down" if button.isChecked() else "chevron-right", "muted"))

    @Slot()
    def _dress(self) -> None:
        for button, *_ in self._lines:
            self._turn(button)


def _detail(row: MoneyRow, muted: str) -> str:
    """Return how an amount comes about as rich text; what is not a figure is in the colour `muted`."""
    facts = [("Formula", row.how), ("Range", row.range_text), ("Source", row.source), ("Date", row.date or "none")]
    lines = [_line(_colored(name, muted), escape(text)) for name, text in facts if text]
    symbols = [
        _line(*map(escape, (name, value, meaning)), _colored(source, muted))
        for name, value, meaning, source in row.symbols
    ]
    return f"<table>{''.join(lines)}</table><table>{''.join(symbols)}</table>"


def _line(*cells: str) -> str:
    return f"<tr>{''.join(map(_CELL.format, cells))}</tr>"


def _colored(text: str, color: str) -> str:
    return f'<span style="color: {color}">{escape(text)}</span>'
