"""Pieces of rich text: table rows, and text in a color."""

from collections.abc import Iterable
from html import escape

_CELL = '<td style="padding-right: 12px">{}</td>'


def table_row(*cells: str) -> str:
    """Return an HTML table row of cells, each of which is rich text."""
    return f"<tr>{''.join(map(_CELL.format, cells))}</tr>"


def fact_rows(facts: Iterable[tuple[str, str]], color: str) -> str:
    """Return HTML table rows for the facts that have a text: the name in `color`, then the plain text."""
    return "".join(table_row(colored(name, color), escape(text)) for name, text in facts if text)


def colored(text: str, color: str) -> str:
    """Return HTML that shows plain text in `color`."""
    return f'<span style="color: {color}">{escape(text)}</span>'
