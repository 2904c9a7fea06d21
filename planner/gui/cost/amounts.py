"""Amounts of money that open in place: formula, each symbol with value, source and date."""

from html import escape
from typing import Final, NamedTuple

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QGridLayout, QLabel, QToolButton, QWidget

from planner.gui.theme import Theme, mark
from planner.gui.widgets.label import make_label
from planner.present.cost.amounts import MoneyRow

_CELL: Final = '<td style="padding-right: 12px">{}</td>'
_RIGHT: Final = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_TITLE, _AMOUNT, _SURE = range(3)


class AmountGroup(NamedTuple):
    """Amounts under a heading with their sum."""

    heading: str
    total: str
    rows: tuple[MoneyRow, ...]


class _Line(NamedTuple):
    button: QToolButton
    amount: QLabel
    sure: QLabel
    detail: QLabel


class Amounts(QWidget):
    """A line for each amount with how sure it is, all in one column; what is open stays open while the plan changes."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._open: set[str] = set()
        self._lines: list[_Line] = []
        self._headings: list[tuple[QLabel, QLabel]] = []
        self._shown: list[tuple[str, MoneyRow]] = []
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(theme.spacing.medium)
        self._grid.setVerticalSpacing(0)
        self._grid.setColumnStretch(_TITLE, 1)
        theme.changed.connect(self._dress)

    @property
    def rows(self) -> tuple[MoneyRow, ...]:
        """Return the amounts that are shown."""
        return tuple(row for _, row in self._shown)

    def show_groups(self, groups: tuple[AmountGroup, ...]) -> None:
        """Show other amounts; a group without any is left out."""
        groups = tuple(group for group in groups if group.rows)
        self._shown = [(f"{group.heading}·{row.name}", row) for group in groups for row in group.rows]
        self._make_room(len(groups))
        place = at = 0
        for heading, group in zip(self._headings, groups, strict=False):
            self._place_heading(heading, group, place)
            place += 1
            for _ in group.rows:
                self._place_line(at, place)
                at, place = at + 1, place + 2
        for line in self._lines[at:]:
            for widget in line:
                widget.hide()
        for heading in self._headings[len(groups) :]:
            for label in heading:
                label.hide()

    def open_amount(self, name: str) -> str:
        """Unfold the amount called `name`, and return what it says."""
        at = next(at for at, (_, row) in enumerate(self._shown) if row.name == name)
        if not self._lines[at].button.isChecked():
            self._lines[at].button.click()
        return self._lines[at].detail.text()

    def _make_room(self, groups: int) -> None:
        while len(self._headings) < groups:
            bold = self._theme.font(bold=True)
            self._headings.append((make_label(font=bold), make_label(font=bold)))
        while len(self._lines) < len(self._shown):
            self._lines.append(self._make_line(len(self._lines)))

    def _place_heading(self, heading: tuple[QLabel, QLabel], group: AmountGroup, place: int) -> None:
        for column, (label, text) in enumerate(zip(heading, (group.heading, group.total), strict=True)):
            label.setText(text)
            label.setContentsMargins(0, self._theme.spacing.small if place else 0, 0, 0)
            self._grid.addWidget(label, place, column, _RIGHT if column else Qt.AlignmentFlag.AlignLeft)
            label.show()

    def _place_line(self, at: int, place: int) -> None:
        key, row = self._shown[at]
        line = self._lines[at]
        self._grid.addWidget(line.button, place, _TITLE, Qt.AlignmentFlag.AlignLeft)
        self._grid.addWidget(line.amount, place, _AMOUNT, _RIGHT)
        self._grid.addWidget(line.sure, place, _SURE)
        self._grid.addWidget(line.detail, place + 1, 0, 1, 3)
        line.button.setText(row.title)
        line.button.setChecked(key in self._open)
        line.button.setAccessibleName(f"{row.title}, {row.text}, {row.certainty}")
        origin = "\n".join(part for part in (row.range_text, row.date or "no date", row.source) if part)
        line.amount.setText(row.text)
        line.sure.setText(row.certainty)
        for widget in (line.button, line.amount, line.sure):
            widget.setToolTip(origin)
            widget.show()
        self._turn(line.button)
        line.detail.setText(_detail(row, self._theme.color("muted").name()))
        line.detail.setVisible(key in self._open)

    def _make_line(self, at: int) -> _Line:
        button = QToolButton()
        button.setCheckable(True)
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        mark(button, "section")
        button.clicked.connect(lambda opened: self._toggle(at, opened))
        detail = QLabel(wordWrap=True, textFormat=Qt.TextFormat.RichText)
        detail.setFont(self._theme.font("small"))
        detail.setContentsMargins(self._theme.spacing.large, 0, 0, self._theme.spacing.small)
        detail.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        return _Line(button, make_label(), make_label(role="muted"), detail)

    def _toggle(self, at: int, opened: bool) -> None:
        (self._open.add if opened else self._open.discard)(self._shown[at][0])
        self._turn(self._lines[at].button)
        self._lines[at].detail.setVisible(opened)

    def _turn(self, button: QToolButton) -> None:
        button.setIcon(self._theme.icon("chevron-down" if button.isChecked() else "chevron-right", "muted"))

    @Slot()
    def _dress(self) -> None:
        for line, (_, row) in zip(self._lines, self._shown, strict=False):
            self._turn(line.button)
            line.detail.setText(_detail(row, self._theme.color("muted").name()))


def _detail(row: MoneyRow, muted: str) -> str:
    """Return how an amount comes about as rich text; what is not a figure is in the colour `muted`."""
    facts = [("Formula", row.how), ("Range", row.range_text), ("Source", row.source), ("Date", row.date or "none")]
    lines = [_line(_colored(name, muted), escape(text)) for name, text in facts if text]
    symbols = [
        _line(escape(name), escape(value), f"{escape(meaning)}<br>{_colored(source, muted)}")
        for name, value, meaning, source in row.symbols
    ]
    return f"<table>{''.join(lines)}</table><table>{''.join(symbols)}</table>"


def _line(*cells: str) -> str:
    return f"<tr>{''.join(map(_CELL.format, cells))}</tr>"


def _colored(text: str, color: str) -> str:
    return f'<span style="color: {color}">{escape(text)}</span>'
