"""What a term of the breakdown shows when it is opened: how its bytes come about, and who says so."""

from collections.abc import Iterable
from html import escape
from typing import Final

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QLabel

from planner.gui.memory.term_columns import place_columns
from planner.gui.theme import Theme
from planner.present import format as fmt
from planner.present.memory import PartRow, TermRow

_ORIGINS: Final = {
    "model": "from the model",
    "workload": "your choice",
    "card": "from the card",
    "format": "of the format",
    "library": "of the library",
}

_CELL_SPACING: Final = 2


class TermDetail(QLabel):
    """Formula, numbers put in, symbols, parts, source and certainty of a term, as text that can be selected."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(wordWrap=True, textFormat=Qt.TextFormat.RichText)
        self._theme = theme
        self._row: TermRow | None = None
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        left = round(place_columns(theme, 0).title) - _CELL_SPACING
        self.setContentsMargins(left, theme.spacing.tiny, 0, theme.spacing.small)
        self.setFont(theme.font("small"))
        theme.changed.connect(self._write)

    def set_row(self, row: TermRow) -> None:
        """Show another term."""
        if row != self._row:
            self._row = row
            self.setAccessibleName(f"How {row.title.lower()} is computed")
            self._write()

    @Slot()
    def _write(self) -> None:
        if self._row is not None:
            self.setText(detail_html(self._row, self._theme.color("muted").name()))


def detail_html(row: TermRow, muted: str) -> str:
    """Return everything about `row` as rich text; headings are in the colour `muted`."""
    facts = [("Formula", row.how), ("With numbers", f"{row.numbers_put_in} = {row.exact}")]
    if row.range_text != fmt.size(row.bytes):
        facts.append(("Range", row.range_text))
    facts += [("How sure", row.certainty), ("Source", row.source)]
    symbols = (
        (symbol.name, symbol.value, symbol.meaning, _ORIGINS.get(symbol.origin, symbol.origin))
        for symbol in row.symbols
    )
    blocks = (
        _table(((_colored(name, muted), escape(text)) for name, text in facts)),
        _headed(("Symbol", "Value", "Meaning", "Where from"), symbols, muted),
        _headed(("Part", "Size", "How", "Source"), map(_part, row.parts), muted),
    )
    return "".join(block for block in blocks if block)


def _part(part: PartRow) -> tuple[str, str, str, str]:
    return part.title, f"{part.text} ({part.exact})", part.numbers_put_in, part.source


def _headed(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]], muted: str) -> str:
    body = [tuple(map(escape, row)) for row in rows]
    return _table([tuple(_colored(head, muted) for head in heads), *body]) if body else ""


def _table(rows: Iterable[tuple[str, ...]]) -> str:
    lines = ("".join(f'<td style="padding-right: 12px">{cell}</td>' for cell in row) for row in rows)
    return f'<table cellspacing="{_CELL_SPACING}">{"".join(f"<tr>{line}</tr>" for line in lines)}</table>'


def _colored(text: str, color: str) -> str:
    return f'<span style="color: {color}">{escape(text)}</span>'
