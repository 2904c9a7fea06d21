"""Keys that scroll `gpu-planner monitor` in a terminal, and q, which ends it."""

import os
import signal
import sys
from collections.abc import Callable
from threading import Event, Thread, main_thread
from types import TracebackType
from typing import Final, Literal, Self

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
        import _thread

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
