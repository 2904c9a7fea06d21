"""The child: takes a request from its parent, traces, and answers; the only process that runs a person's code."""

import faulthandler
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import BinaryIO, Final, NoReturn

from planner.trace.child.messages import CHANNEL_LOST, Message
from planner.trace.consent import own_files
from planner.trace.recording import Recording
from planner.trace.request import TraceRequest
from planner.trace.worker.failures import explain

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


Record = Callable[[TraceRequest, Callable[[str, int, int, int], None]], Recording]


def main(load_record: Callable[[], Record]) -> NoReturn:
    """Answer one request with what the loaded function records, and end."""
    start_seconds, seconds, memory_bytes = map(float, sys.argv[1:])
    channel = Channel(seconds)
    # A module that reads the command line sees none.
    del sys.argv[1:]
    _limit_memory(int(memory_bytes))
    channel.allow(start_seconds)
    channel.send(Message(progress=("start", 0, 0, 0)).line)
    channel.send(_answer(channel, load_record))
    # Threads that the person's code left running would hold up an ordinary end.
    os._exit(0)


def _answer(channel: Channel, load_record: Callable[[], Record]) -> bytes:
    """Return the last line that this process says."""
    files: tuple[Path, ...] = ()
    try:
        request = TraceRequest.model_validate_json(channel.read_request())
        files = own_files(request)
        return Message(result=load_record()(request, channel.progress)).line
    except BaseException as error:  # noqa: BLE001  # also sys.exit and KeyboardInterrupt of the person's code
        _limit_memory(None)
        return Message(failure=explain(error, channel.stage, files)).line


def _limit_memory(memory_bytes: int | None) -> None:
    """Let this process take so much memory; Windows has no such limit, there the parent alone watches."""
    if sys.platform == "win32":
        return
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = most if memory_bytes is None else memory_bytes
    soft = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _load_record() -> Record:
    from planner.trace.worker.job import record

    # It logs in full what a kernel raises, which is told anyway.
    logging.getLogger("torch._subclasses.fake_tensor").disabled = True
    return record


if __name__ == "__main__":
    main(_load_record)
