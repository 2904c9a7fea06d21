"""Pieces of rich text: table rows, and text in a color."""

from collections.abc import Iterable
from html import escape

_CELL = '<td style="padding-right: 12px">{}</td>'


def table_row(*cells: str) -> str:
    """Return a table row of cells, each of which is rich text."""
    return f"<tr>{''.join(map(_CELL.format, cells))}</tr>"


def fact_rows(facts: Iterable[tuple[str, str]], color: str) -> str:
    """Return a table row for each fact with a text: its name in `color`, and the plain text."""
    return "".join(table_row(colored(name, color), escape(text)) for name, text in facts if text)


def colored(text: str, color: str) -> str:
    """Return plain text in a color."""
    return f'<span style="color: {color}">{escape(text)}</span>'
