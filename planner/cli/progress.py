"""Progress line on a terminal, for commands that take more than a moment."""

import shutil
from types import TracebackType
from typing import Self, TextIO


class ProgressLine:
    """Progress line on `stream`, shown within the context and only if the stream is a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown_length = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown_length:
            self.show("")
            self._stream.write("\r")
            self._stream.flush()

    def show(self, text: str) -> None:
        """Replace the line by `text`."""
        if not self._stream.isatty():
            return
        # One column stays free: a full line would move the cursor to the next line.
        text = text[: shutil.get_terminal_size().columns - 1]
        # Blanks instead of an escape sequence, which Windows consoles do not interpret by default.
        self._stream.write(f"\r{text.ljust(self._shown_length)}")
        self._stream.flush()
        self._shown_length = max(self._shown_length, len(text))
