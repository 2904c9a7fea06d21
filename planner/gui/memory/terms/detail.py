"""What a term of the breakdown shows when it is opened: how its bytes come about, and who says so."""

from html import escape
from typing import Final

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QLabel

from planner.gui.memory.terms.columns import place_columns
from planner.gui.theme import Theme
from planner.present import format as fmt
from planner.present.memory.view import PartRow, SymbolRow, TermRow

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
    facts = [("Formula", row.how), ("With numbers", _equation(row.numbers_put_in, row.exact))]
    if row.range_text != fmt.size(row.bytes):
        facts.append(("Range", row.range_text))
    facts += [("How sure", row.certainty), ("Source", row.source)]
    blocks = (
        "".join(_line(_colored(name, muted), escape(text)) for name, text in facts),
        _heads(("Symbol", "Value", "Meaning", "Where from"), muted) + "".join(map(_symbol, row.symbols)),
        _heads(("Part", "Size", "How"), muted) + "".join(_part(part, muted) for part in row.parts),
    )
    shown = (True, bool(row.symbols), bool(row.parts))
    tables = (f'<table width="100%" cellspacing="{_CELL_SPACING}">{block}</table>' for block in blocks)
    return "".join(table for table, some in zip(tables, shown, strict=True) if some)


def _equation(numbers: str, exact: str) -> str:
    return exact if exact.startswith(numbers) else f"{numbers} = {exact}"


def _symbol(symbol: SymbolRow) -> str:
    origin = _ORIGINS.get(symbol.origin, symbol.origin)
    return _line(*map(escape, (symbol.name, symbol.value, symbol.meaning, origin)))


def _part(part: PartRow, muted: str) -> str:
    numbers = _equation(part.numbers_put_in, part.exact)
    source = f'<tr><td></td><td colspan="2">{_colored(part.source, muted)}</td></tr>'
    return _line(*map(escape, (part.title, part.text, numbers))) + source


def _heads(heads: tuple[str, ...], muted: str) -> str:
    return _line(*(_colored(head, muted) for head in heads))


def _line(*cells: str) -> str:
    columns = "".join(f'<td style="padding-right: 12px">{cell}</td>' for cell in cells)
    return f"<tr>{columns}</tr>"


def _colored(text: str, color: str) -> str:
    return f'<span style="color: {color}">{escape(text)}</span>'
