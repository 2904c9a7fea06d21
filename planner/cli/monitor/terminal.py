"""What `monitor` prints on a terminal: a part that is redrawn, and tables and sentences at its width."""

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self, TextIO

from planner.cli.table import listing, terminal_width
from planner.present.columns import Column, Row

_UP: Final = "\x1b[{}F"
_CLEAR_LINE: Final = "\x1b[K"
_CLEAR_BELOW: Final = "\x1b[J"
_HIDE_CURSOR: Final = "\x1b[?25l"
_SHOW_CURSOR: Final = "\x1b[?25h"


class Screen:
    """Draws pages over each other on `stream` while it is entered; where that is no terminal, one below the other."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lines = 0

    def __enter__(self) -> Self:
        if self._stream.isatty():
            if sys.platform == "win32":
                # Consoles of Windows know the sequences once a command was run in them.
                os.system("")  # nothing is run
            self._stream.write(_HIDE_CURSOR)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream.isatty():
            self._stream.write(_SHOW_CURSOR)
            self._stream.flush()

    def show(self, page: str) -> None:
        """Draw a page in place of the last one."""
        if not self._stream.isatty():
            self._stream.write(f"{page}\n\n")
            self._stream.flush()
            return
        # What does not fit would scroll, and leave its first lines behind.
        columns, rows = shutil.get_terminal_size()
        lines = [line[:columns] for line in page.splitlines()[: rows - 1]]
        back = _UP.format(self._lines) if self._lines else ""
        self._stream.write(back + "".join(f"{line}{_CLEAR_LINE}\n" for line in lines) + _CLEAR_BELOW)
        self._stream.flush()
        self._lines = len(lines)


def fitting_table(
    columns: Sequence[Column[Row]], rows: Sequence[Row], flexible: str, dispensable: Sequence[str]
) -> str:
    """Return rows as a table; where it is too wide, columns are left out by their keys, one after the other.

    The column `flexible` is cut before that.
    """
    width = terminal_width()
    for count in range(len(dispensable) + 1):
        left = [column for column in columns if column.key not in dispensable[:count]]
        text = listing(left, rows, (flexible,))
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
