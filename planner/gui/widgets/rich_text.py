"""Pieces of rich text: tables of facts, and text in a colour."""

from collections.abc import Iterable
from html import escape

_CELL = '<td style="padding-right: 12px">{}</td>'


def table_row(*cells: str) -> str:
    """Return a row of cells, each of which is rich text."""
    return f"<tr>{''.join(map(_CELL.format, cells))}</tr>"


def fact_rows(facts: Iterable[tuple[str, str]], color: str) -> str:
    """Return a row for each name in `color` with its text, which is plain; what has none is left out."""
    return "".join(table_row(colored(name, color), escape(text)) for name, text in facts if text)


def colored(text: str, color: str) -> str:
    """Return plain text in a colour."""
    return f'<span style="color: {color}">{escape(text)}</span>'
