"""The sampler as its parent sees it: a process with a pipe each way, and a thread that reads what it says."""

import json
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from io import BufferedReader, BufferedWriter
from threading import Thread
from typing import Final, cast

from planner.monitor.readings.wire import BadLineError, Message, read_line
from planner.monitor.settings import Settings

_LONGEST_LINE: Final = 1 << 24
_KEPT_LINES: Final = 40
# What a process that is gone has written is read by then, unless another that it started holds its end of the pipe.
_DRAIN_SECONDS: Final = 1.0

Heard = Callable[["Child", Message], None]
Over = Callable[["Child"], None]


class Child:
    """A running sampler. `on_message` and `on_end` are called from its reading thread."""

    def __init__(
        self, settings: Settings, on_message: Heard, on_end: Over, environment: Mapping[str, str] | None = None
    ) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "planner.monitor.sampler", json.dumps(settings._asdict())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # What a library prints, and a traceback, come as lines that are none of ours.
            stderr=subprocess.STDOUT,
            env=None if environment is None else dict(environment),
            # Ctrl+C in a terminal is the parent's to hear.
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        self._commands = cast("BufferedWriter", self._process.stdin)
        self._lines = cast("BufferedReader", self._process.stdout)
        self._printed: deque[str] = deque(maxlen=_KEPT_LINES)
        self._reader = Thread(target=self._read, args=(on_message, on_end), name="sampler", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Return its number."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Return how it ended, None while it runs."""
        return self._process.poll()

    @property
    def printed(self) -> str:
        """Return the last of what it printed beside its messages."""
        return "\n".join(self._printed)

    def command(self, **command: object) -> None:
        """Send a command; one that cannot be sent any more is not."""
        with suppress(OSError, ValueError):
            self._commands.write(json.dumps(command).encode() + b"\n")
            self._commands.flush()

    def stop(self, seconds: float) -> bool:
        """Ask it to end, kill it if it has not within `seconds`, and return whether it is gone."""
        self.command(stop=True)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self.kill(seconds)

    def kill(self, seconds: float) -> bool:
        """End it, and return whether it is gone within `seconds`: one that hangs in the kernel stays."""
        if self._process.poll() is None:
            self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self.reap()

    def reap(self) -> bool:
        """Return whether it is gone, with its pipes and its thread."""
        if self._process.poll() is None:
            return False
        with suppress(OSError):
            self._commands.close()
        self._reader.join(_DRAIN_SECONDS)
        # Closing it under the thread that still reads would wait for that.
        if not self._reader.is_alive():
            self._lines.close()
        return True

    def _read(self, on_message: Heard, on_end: Over) -> None:
        while line := self._lines.readline(_LONGEST_LINE):
            try:
                message = read_line(line)
            except BadLineError:
                self._printed.append(line.decode("utf-8", "replace").rstrip())
            else:
                on_message(self, message)
        on_end(self)
