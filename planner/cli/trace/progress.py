"""How far a trace is, on one line of the terminal that is written over and gone in the end."""

import shutil
from types import TracebackType
from typing import Self, TextIO

from planner.trace.run import Progress


class ProgressLine:
    """Shows progress on `stream` while it is entered; says nothing where that is no terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            self._write("")
            self._stream.write("\r")
            self._stream.flush()

    def show(self, progress: Progress) -> None:
        """Write what is being done over what was there."""
        self._write(f"Tracing: {progress.text}")

    def _write(self, text: str) -> None:
        if not self._stream.isatty():
            return
        # One column stays free: a full line would move the cursor to the next one.
        text = text[: shutil.get_terminal_size().columns - 1]
        # Blanks, not an escape sequence: consoles of Windows know those only when asked to.
        self._stream.write(f"\r{text.ljust(self._shown)}")
        self._stream.flush()
        self._shown = max(self._shown, len(text))
