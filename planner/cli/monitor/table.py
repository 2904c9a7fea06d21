"""What `monitor` prints at the width of the terminal: tables that leave out columns, and sentences that are wrapped."""

import textwrap
from collections.abc import Sequence

from planner.cli.table import Head, table, terminal_width
from planner.present.columns import Column, Row


def fitting_table(
    columns: Sequence[Column[Row]], rows: Sequence[Row], flexible: str, dispensable: Sequence[str]
) -> str:
    """Return rows as a table; where it is too wide, columns are left out by their keys, one after the other.

    The column `flexible` is cut before that.
    """
    width = terminal_width()
    for count in range(len(dispensable) + 1):
        left = [column for column in columns if column.key not in dispensable[:count]]
        heads = [Head(column.title, column.align, column.key == flexible, column.unit) for column in left]
        text = table(heads, [[column.text(row) for column in left] for row in rows], width)
        if width is None or max(map(len, text.splitlines())) <= width:
            break
    return text


def wrapped(line: str) -> str:
    """Return a line in as many as the terminal's width needs, the later ones indented."""
    width = terminal_width()
    if width is None or len(line) <= width:
        return line
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return "\n".join(textwrap.wrap(line, max(width, 20), subsequent_indent=indent, break_on_hyphens=False))
