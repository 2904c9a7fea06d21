"""Terminal output of `gpu-planner monitor`: a redrawn screen, and tables and lines fitted to its width."""

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from threading import Lock
from types import TracebackType
from typing import Final, Literal, NamedTuple, Self, TextIO

from planner.cli.monitor.keyboard import Key
from planner.cli.table import terminal_width
from planner.present.monitor.diagnosis import Tone

_UP: Final = "\x1b[{}F"
_CLEAR_LINE: Final = "\x1b[K"
_CLEAR_BELOW: Final = "\x1b[J"
_HIDE_CURSOR: Final = "\x1b[?25l"
_SHOW_CURSOR: Final = "\x1b[?25h"
_PLAIN: Final = "\x1b[0m"
_ACCENT: Final = "\x1b[36m"
_TONES: Final = {"heading": "\x1b[1m", "muted": "\x1b[2m", "ok": "\x1b[32m", "warn": "\x1b[33m", "bad": "\x1b[31m"}
_CONTROLS: Final = re.compile("[\x00-\x1f\x7f-\x9f]")
_BAR: Final = re.compile("[▏▎▍▌▋▊▉█]+")


class Line(NamedTuple):
    """A line of a page, with the tone in which a terminal shows it."""

    text: str
    tone: Tone | Literal["heading"] = ""


def lines_of(text: str, tone: Tone | Literal["heading"] = "") -> list[Line]:
    """Return the lines of `text`, all in one tone."""
    return [Line(line, tone) for line in text.splitlines()]


class Screen:
    """Terminal output on which each page replaces the last page; on a file or pipe, pages are appended.

    A page with more lines than the terminal is scrolled by `scroll`, which another thread may call.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._has_colors = self._is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self._page: Sequence[Line] = ()
        self._first = 0
        self._height = 0
        self._lock = Lock()

    def __enter__(self) -> Self:
        if self._is_terminal:
            if sys.platform == "win32":
                # Windows consoles interpret escape sequences only after a command was run in them.
                os.system("")  # an empty command
            self._stream.write(_HIDE_CURSOR)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_terminal:
            self._stream.write(_SHOW_CURSOR)
            self._stream.flush()

    def show(self, page: Sequence[Line]) -> None:
        """Print `page` in place of the previous page, without control characters in the names of processes."""
        page = [line._replace(text=_CONTROLS.sub("\ufffd", line.text)) for line in page]
        if self._is_terminal:
            with self._lock:
                self._page = page
                self._draw()
            return
        self._stream.write("".join(f"{line.text}\n" for line in page) + "\n")
        self._stream.flush()

    def scroll(self, key: Key) -> None:
        """Scroll by a line or a page, or to the first or the last line, and draw the page again."""
        with self._lock:
            height = max(1, shutil.get_terminal_size().lines - 2)
            moves = {"up": -1, "down": 1, "page-up": -height, "page-down": height}
            last = len(self._page)
            self._first = {"home": 0, "end": last}.get(key, self._first + moves.get(key, 0))
            self._draw()

    def _draw(self) -> None:
        """Draw the lines that fit; more would scroll the terminal, and the first lines would remain."""
        columns, rows = shutil.get_terminal_size()
        shown, height = self._page, rows - 1
        self._first = min(max(self._first, 0), max(0, len(shown) - height + 1)) if len(shown) > height else 0
        if len(shown) > height > 1:
            last = self._first + height - 1
            place = f"lines {self._first + 1} to {last} of {len(shown)} · ↑ ↓ Page Up Page Down scroll · q quits"
            shown = (*shown[self._first : last], Line(place, "muted"))
        back = _UP.format(self._height) if self._height else ""
        lines = [self._painted(line._replace(text=line.text[:columns])) for line in shown[:height]]
        self._stream.write(back + "".join(f"{line}{_CLEAR_LINE}\n" for line in lines) + _CLEAR_BELOW)
        self._stream.flush()
        self._height = len(lines)

    def _painted(self, line: Line) -> str:
        if not self._has_colors:
            return line.text
        if line.tone:
            return f"{_TONES[line.tone]}{line.text}{_PLAIN}"
        return _BAR.sub(lambda bar: f"{_ACCENT}{bar.group()}{_PLAIN}", line.text)


def wrap_line(line: str) -> str:
    """Wrap a line at the terminal's width, with further lines indented."""
    width = terminal_width()
    if width is None or len(line) <= width:
        return line
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return "\n".join(textwrap.wrap(line, max(width, 20), subsequent_indent=indent, break_on_hyphens=False))
