"""Terminal output of `gpu-planner monitor`: a redrawn screen, and tables and lines fitted to its width."""

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self, TextIO

from planner.cli.table import column_table, terminal_width
from planner.present.columns import Column, Row

_UP: Final = "\x1b[{}F"
_CLEAR_LINE: Final = "\x1b[K"
_CLEAR_BELOW: Final = "\x1b[J"
_HIDE_CURSOR: Final = "\x1b[?25l"
_SHOW_CURSOR: Final = "\x1b[?25h"


class Screen:
    """Terminal output on which each page replaces the last page; on a file or pipe, pages are appended."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lines = 0

    def __enter__(self) -> Self:
        if self._stream.isatty():
            if sys.platform == "win32":
                # Windows consoles interpret escape sequences only after a command was run in them.
                os.system("")  # an empty command
            self._stream.write(_HIDE_CURSOR)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream.isatty():
            self._stream.write(_SHOW_CURSOR)
            self._stream.flush()

    def show(self, page: str) -> None:
        """Print `page` in place of the previous page."""
        if not self._stream.isatty():
            self._stream.write(f"{page}\n\n")
            self._stream.flush()
            return
        # A page that does not fit would scroll the screen, and its first lines would remain.
        columns, rows = shutil.get_terminal_size()
        lines = [line[:columns] for line in page.splitlines()[: rows - 1]]
        back = _UP.format(self._lines) if self._lines else ""
        self._stream.write(back + "".join(f"{line}{_CLEAR_LINE}\n" for line in lines) + _CLEAR_BELOW)
        self._stream.flush()
        self._lines = len(lines)


def fitting_table(
    columns: Sequence[Column[Row]], rows: Sequence[Row], flexible: str, dispensable: Sequence[str]
) -> str:
    """Return a table that fits the terminal's width: `flexible` is the column to shrink, `dispensable` those to omit.

    Cells in the column `flexible` are cut first; then the columns `dispensable` are left out, one after another.
    """
    width = terminal_width()
    for count in range(len(dispensable) + 1):
        left = [column for column in columns if column.key not in dispensable[:count]]
        text = column_table(left, rows, (flexible,))
        if width is None or max(map(len, text.splitlines())) <= width:
            break
    return text


def wrap_line(line: str) -> str:
    """Wrap a line at the terminal's width, with further lines indented."""
    width = terminal_width()
    if width is None or len(line) <= width:
        return line
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return "\n".join(textwrap.wrap(line, max(width, 20), subsequent_indent=indent, break_on_hyphens=False))
