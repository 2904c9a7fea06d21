"""The sampler as a child process: a pipe each way, and a thread that reads its messages."""

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
from planner.monitor.settings import SamplerSettings

_LONGEST_LINE: Final = 1 << 24
_KEPT_LINES: Final = 40
# What a process that is gone has written is read by then, unless another that it started holds its end of the pipe.
_DRAIN_SECONDS: Final = 1.0

MessageCallback = Callable[["SamplerProcess", Message], None]
EndCallback = Callable[["SamplerProcess"], None]


class SamplerProcess:
    """A running sampler. `on_message` and `on_end` are called from its reader thread."""

    def __init__(
        self,
        settings: SamplerSettings,
        on_message: MessageCallback,
        on_end: EndCallback,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "planner.monitor.sampler", json.dumps(settings._asdict())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Output of libraries and tracebacks arrive as lines that are not messages.
            stderr=subprocess.STDOUT,
            env=None if environment is None else dict(environment),
            # Ctrl+C in a terminal must reach the parent only.
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
        """Return the PID."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Return the exit code, None while it runs."""
        return self._process.poll()

    @property
    def printed(self) -> str:
        """Return the end of its output other than messages."""
        return "\n".join(self._printed)

    def command(self, **command: object) -> None:
        """Send a command; errors are ignored, as the process may have ended."""
        with suppress(OSError, ValueError):
            self._commands.write(json.dumps(command).encode() + b"\n")
            self._commands.flush()

    def stop(self, seconds: float) -> bool:
        """Ask it to stop, kill it after the timeout, and return whether it is gone."""
        self.command(stop=True)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self.kill(seconds)

    def kill(self, seconds: float) -> bool:
        """Kill it, and return whether it is gone within the timeout: one stuck in the kernel remains."""
        if self._process.poll() is None:
            self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self.reap()

    def reap(self) -> bool:
        """Return whether it is gone, and close its pipes and thread if so."""
        if self._process.poll() is None:
            return False
        with suppress(OSError):
            self._commands.close()
        self._reader.join(_DRAIN_SECONDS)
        # Closing it under the thread that still reads would wait for that.
        if not self._reader.is_alive():
            self._lines.close()
        return True

    def _read(self, on_message: MessageCallback, on_end: EndCallback) -> None:
        while line := self._lines.readline(_LONGEST_LINE):
            try:
                message = read_line(line)
            except BadLineError:
                self._printed.append(line.decode("utf-8", "replace").rstrip())
            else:
                on_message(self, message)
        on_end(self)
