"""The sampler as a child process, here or over SSH: a pipe each way, and a thread that reads its messages.

A sampler on another machine greets first, and is answered with a question for its clock and with its settings; its
later messages are passed on with their times by this machine's clocks.
"""

import json
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from io import BufferedReader, BufferedWriter
from threading import Thread
from time import monotonic, time
from typing import Final, cast

from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.sample import Sample
from planner.monitor.readings.wire import WIRE_VERSION, BadLineError, ClockAnswer, Hello, Message, read_line
from planner.monitor.recording.records import check_times, validate_message
from planner.monitor.settings import SamplerSettings
from planner.monitor.supervisor.remote import RemoteAddress, RemoteClock

_MAX_LINE_BYTES: Final = 1 << 24
_KEPT_LINES: Final = 40
# Time to read the remaining output of an ended process; a child of that process may keep the pipe open.
_DRAIN_SECONDS: Final = 1.0

MessageCallback = Callable[["SamplerProcess", Message], None]
EndCallback = Callable[["SamplerProcess"], None]


class SamplerProcess:
    """A sampler in a child process, over SSH with an `address`; a reader thread calls `on_message` and `on_end`."""

    def __init__(
        self,
        settings: SamplerSettings,
        on_message: MessageCallback,
        on_end: EndCallback,
        environment: Mapping[str, str] | None = None,
        address: RemoteAddress | None = None,
    ) -> None:
        own_command = (sys.executable, "-P", "-m", "planner.monitor.sampler", json.dumps(settings._asdict()))
        self._settings, self._address = settings, address
        self.hello: Hello | None = None
        self.clock: RemoteClock | None = None
        self._process = subprocess.Popen(
            own_command if address is None else address.command,
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
                if self._address is not None:
                    message = self._message_of_other_machine(message)
            except BadLineError:
                self._printed.append(line.decode("utf-8", "replace").rstrip())
            else:
                on_message(self, message)
        on_end(self)

    def _message_of_other_machine(self, message: Message) -> Message:
        """Return a checked message by the clocks of this machine; answer a greeting."""
        if isinstance(message, Hello):
            self.hello = message
            if message.wire == WIRE_VERSION:
                self.command(clock=monotonic())
                self.command(settings=self._settings._asdict())
        elif isinstance(message, ClockAnswer):
            check_times(message)
            self.clock = RemoteClock(message, monotonic(), time())
        elif self.clock is None:
            raise BadLineError("a message before the clock")
        elif isinstance(message, Inventory | Sample):
            if isinstance(message, Sample) and self.clock.was_set(message, monotonic(), time()):
                self.command(clock=monotonic())
            return validate_message(self.clock.corrected(validate_message(message)))
        return message
