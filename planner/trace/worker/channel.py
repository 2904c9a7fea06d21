"""The child's private way to its parent, out of reach of what the person's code prints and reads."""

import faulthandler
import os
import signal
import sys
from threading import Thread
from time import monotonic
from typing import BinaryIO, Final

from planner.trace.child.messages import CHANNEL_LOST, Message

_PAUSE_SECONDS: Final = 0.05


class Channel:
    """The messages to the parent, one a line; Python's own report goes here too where the process crashes.

    `seconds` is how long the person's code may take. The parent keeps the pipe with the request open for as long as it
    wants the answer: when it closes, this process ends, with all that it started.
    """

    def __init__(self, seconds: float) -> None:
        self.stage = "start"
        self._seconds = seconds
        self._owner = os.getpid()
        self._last = 0.0
        self._messages = open(os.dup(1), "wb")  # noqa: SIM115  # open for as long as the process
        self._requests = open(os.dup(0), "rb")  # noqa: SIM115  # so too
        # From here on what is printed goes where errors go, and there is nothing to read.
        os.dup2(2, 1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        faulthandler.enable(self._messages)

    def read_request(self) -> bytes:
        """Return the request; from then on this process ends when the parent goes away."""
        line = self._requests.readline()
        Thread(target=_end_with, args=(self._requests,), name="parent", daemon=True).start()
        return line

    def allow(self, seconds: float) -> None:
        """End this process `seconds` from now, with a report of where it was."""
        faulthandler.dump_traceback_later(seconds, exit=True, file=self._messages)

    def progress(self, stage: str, step: int, steps: int, events: int) -> None:
        """Tell how far the trace is; what follows closely within the same stage is left out.

        The time that the person's code has begins with the first time that this is called.
        """
        if self.stage == "start":
            self.allow(self._seconds)
        now = monotonic()
        if stage != self.stage or now - self._last >= _PAUSE_SECONDS:
            self.stage, self._last = stage, now
            self.send(Message(progress=(stage, step, steps, events)).line)

    def send(self, line: bytes) -> None:
        """Write the line of a message; a fork of this process ends here instead of answering too."""
        if os.getpid() != self._owner:
            os._exit(1)
        try:
            self._messages.write(line)
            self._messages.flush()
        except OSError:
            os._exit(CHANNEL_LOST)


def _end_with(requests: BinaryIO) -> None:
    requests.read()
    if sys.platform != "win32" and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
