"""Terminal of `gpu-planner monitor`: the keys that scroll and end it, a redrawn screen, lines fitted to its width."""

import _thread
import os
import re
import shutil
import signal
import sys
import textwrap
from collections.abc import Callable, Sequence
from threading import Event, Lock, Thread, main_thread
from types import TracebackType
from typing import Final, Literal, NamedTuple, Self, TextIO

from planner.cli.table import terminal_width
from planner.present.monitor.diagnosis import Tone

Key = Literal["up", "down", "page-up", "page-down", "home", "end"]

_KEYS: Final[dict[bytes, Key]] = {
    b"\x1b[A": "up",
    b"\x1bOA": "up",
    b"k": "up",
    b"\x1b[B": "down",
    b"\x1bOB": "down",
    b"j": "down",
    b"\x1b[5~": "page-up",
    b"\x1b[6~": "page-down",
    b" ": "page-down",
    b"\x1b[H": "home",
    b"\x1b[1~": "home",
    b"g": "home",
    b"\x1b[F": "end",
    b"\x1b[4~": "end",
    b"G": "end",
}
# What a Windows console sends after 0 or 0xE0.
_WINDOWS_KEYS: Final[dict[str, Key]] = {
    "H": "up",
    "P": "down",
    "I": "page-up",
    "Q": "page-down",
    "G": "home",
    "O": "end",
}
_QUIT: Final = b"q"
_LONGEST_KEY: Final = 8
_WAIT_SECONDS: Final = 0.2


class Keyboard:
    """Calls `pressed` with each key, from a thread of its own; q ends the program like Ctrl+C.

    Does nothing unless the program reads from a terminal, in the foreground.
    """

    def __init__(self, pressed: Callable[[Key], None]) -> None:
        self._pressed = pressed
        self._over = Event()
        self._thread = Thread(target=self._read_keys, name="keyboard", daemon=True)
        self._restore: Callable[[], None] | None = None

    def __enter__(self) -> Self:
        if sys.stdin is not None and sys.stdin.isatty():
            self._restore = _unbuffered_input()
            if self._restore is not None:
                self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._restore is not None:
            self._over.set()
            self._thread.join()
            self._restore()

    def _read_keys(self) -> None:
        while not self._over.is_set():
            try:
                key = _read_key()
            except (OSError, EOFError):
                # The terminal was closed.
                return
            if key == _QUIT:
                _interrupt()
            elif key in _KEYS:
                self._pressed(_KEYS[key])


def _interrupt() -> None:
    """Interrupt the main thread like Ctrl+C, also while it waits."""
    if sys.platform == "win32":
        _thread.interrupt_main()
    else:
        signal.pthread_kill(main_thread().ident or 0, signal.SIGINT)


if sys.platform == "win32":
    import msvcrt
    from time import sleep

    def _unbuffered_input() -> Callable[[], None] | None:
        """Return what restores the console, which needs nothing here."""
        return lambda: None

    def _read_key() -> bytes:
        """Return the next key as a terminal would send it; empty if none was pressed for a while."""
        if not msvcrt.kbhit():
            sleep(_WAIT_SECONDS)
            return b""
        letter = msvcrt.getwch()
        if letter not in ("\x00", "\xe0"):
            return letter.encode()
        name = _WINDOWS_KEYS.get(msvcrt.getwch())
        return next((code for code, key in _KEYS.items() if key == name), b"")

else:
    import termios
    from select import select

    def _unbuffered_input() -> Callable[[], None] | None:
        """Let keys arrive at once and unechoed; return what restores the terminal, None in the background."""
        terminal = sys.stdin.fileno()
        try:
            if os.tcgetpgrp(terminal) != os.getpgrp():
                return None
            before = termios.tcgetattr(terminal)
            changed = termios.tcgetattr(terminal)
        except OSError:
            return None
        changed[3] &= ~(termios.ICANON | termios.ECHO)
        termios.tcsetattr(terminal, termios.TCSANOW, changed)
        return lambda: termios.tcsetattr(terminal, termios.TCSANOW, before)

    def _read_key() -> bytes:
        """Return the next key as the terminal sends it; empty if none was pressed for a while."""
        terminal = sys.stdin.fileno()
        if not select([terminal], [], [], _WAIT_SECONDS)[0]:
            return b""
        key = os.read(terminal, 1)
        if not key:
            raise EOFError
        # The rest of an escape sequence follows at once.
        while key[:1] == b"\x1b" and key not in _KEYS and len(key) < _LONGEST_KEY:
            if not select([terminal], [], [], 0.0)[0]:
                break
            key += os.read(terminal, 1)
        return key


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
