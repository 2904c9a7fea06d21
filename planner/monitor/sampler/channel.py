"""The sampler's way to its parent: lines out, commands in; it ends when the parent does."""

import faulthandler
import json
import os
import sys
from collections import deque
from collections.abc import Callable
from threading import Condition, Lock, Thread
from typing import Any, BinaryIO, Final

LOST: Final = 74
"""The exit code where the parent went away: that of an input or output error (EX_IOERR)."""


class Channel:
    """Lines to the parent and its commands.

    The pipe of commands is open for as long as the parent lives: when it closes, this process ends at once, even while
    a call into the driver hangs. The command `where` is answered at once too, by `answer_where`.
    """

    def __init__(self, answer_where: Callable[[], bytes]) -> None:
        self._answer_where = answer_where
        self._lines = open(os.dup(1), "wb", buffering=0)  # noqa: SIM115  # open for as long as the process
        self._commands = open(os.dup(0), "rb")  # noqa: SIM115  # so too
        self._sending = Lock()
        self._arrived: deque[dict[str, Any]] = deque()
        self._changed = Condition()
        # What a library prints must not come between the lines.
        os.dup2(2, 1)
        # Where the process crashes, Python's report goes to the parent.
        faulthandler.enable(self._lines, all_threads=False)
        Thread(target=self._listen, name="commands", daemon=True).start()

    def send(self, line: bytes) -> None:
        """Send a line; this process ends where nobody reads it."""
        try:
            with self._sending:
                _write_all(self._lines, line)
        except OSError:
            os._exit(LOST)

    def wait(self, seconds: float) -> dict[str, Any]:
        """Return the next command, or an empty one after so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._arrived), timeout=max(0.0, seconds))
            return self._arrived.popleft() if self._arrived else {}

    def _listen(self) -> None:
        for line in self._commands:
            command = json.loads(line)
            if "where" in command:
                self.send(self._answer_where())
                continue
            with self._changed:
                self._arrived.append(command)
                self._changed.notify()
        os._exit(0)


def _write_all(stream: BinaryIO, line: bytes) -> None:
    rest = memoryview(line)
    while rest:
        rest = rest[stream.write(rest) :]


def silence() -> None:
    """Let Python's own streams lead nowhere where the parent gave them no place."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  # open for as long as the process
