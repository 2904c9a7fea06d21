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

_MAX_LINE_BYTES: Final = 1 << 24
_KEPT_LINES: Final = 40
# Time to read the remaining output of an ended process; a child of that process may keep the pipe open.
_DRAIN_SECONDS: Final = 1.0

MessageCallback = Callable[["SamplerProcess", Message], None]
EndCallback = Callable[["SamplerProcess"], None]


class SamplerProcess:
    """A sampler in a child process. `on_message` and `on_end` are called from a reader thread."""

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
        self._reader = Thread(target=self._read_messages, args=(on_message, on_end), name="sampler", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Return the PID of the sampler."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Return the exit code, None while the sampler runs."""
        return self._process.poll()

    @property
    def last_output(self) -> str:
        """Return the last lines of output that are not messages."""
        return "\n".join(self._printed)

    def command(self, **command: object) -> None:
        """Send a command to the sampler; errors are ignored, since the process may have ended."""
        with suppress(OSError, ValueError):
            self._commands.write(json.dumps(command).encode() + b"\n")
            self._commands.flush()

    def stop(self, seconds: float) -> bool:
        """Ask the sampler to stop, kill it after `seconds`, and return whether the process has ended."""
        self.command(stop=True)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self.kill(seconds)

    def kill(self, seconds: float) -> bool:
        """Kill the sampler, and return whether it ended within `seconds`; a process stuck in the kernel does not."""
        if self._process.poll() is None:
            self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self.reap()

    def reap(self) -> bool:
        """Return whether the sampler has ended; if so, close its pipes and reader thread."""
        if self._process.poll() is None:
            return False
        with suppress(OSError):
            self._commands.close()
        self._reader.join(_DRAIN_SECONDS)
        # Closing the pipe would wait for a thread that still reads from it.
        if not self._reader.is_alive():
            self._lines.close()
        return True

    def _read_messages(self, on_message: MessageCallback, on_end: EndCallback) -> None:
        while line := self._lines.readline(_MAX_LINE_BYTES):
            try:
                message = read_line(line)
            except BadLineError:
                self._printed.append(line.decode("utf-8", "replace").rstrip())
            else:
                on_message(self, message)
        on_end(self)
