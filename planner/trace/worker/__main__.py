"""Entry point of the trace worker: reads a request, traces, and sends the recording."""

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

from planner.trace.child.messages import CHANNEL_LOST, WorkerMessage
from planner.trace.consent import user_files
from planner.trace.recording import TraceRecording
from planner.trace.request import TraceRequest
from planner.trace.worker.failures import explain_failure

_PAUSE_SECONDS: Final = 0.05


class ParentPipe:
    """Messages to the parent, one per line, and crash reports of Python's faulthandler.

    `seconds` is the time limit of the user's code. The parent keeps the request pipe open for as long as it wants the
    result: when it closes, this process ends with everything that it started.
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
        """Return the request; from then on this process exits when the parent goes away."""
        line = self._requests.readline()
        Thread(target=_end_with, args=(self._requests,), name="parent", daemon=True).start()
        return line

    def allow(self, seconds: float) -> None:
        """Exit after `seconds`, with a report of the stack."""
        faulthandler.dump_traceback_later(seconds, exit=True, file=self._messages)

    def progress(self, stage: str, step: int, steps: int, events: int) -> None:
        """Send progress; updates in quick succession within one stage are dropped.

        The first call starts the time limit of the user's code.
        """
        if self.stage == "start":
            self.allow(self._seconds)
        now = monotonic()
        if stage != self.stage or now - self._last >= _PAUSE_SECONDS:
            self.stage, self._last = stage, now
            self.send(WorkerMessage(progress=(stage, step, steps, events)).line)

    def send(self, line: bytes) -> None:
        """Send a message; a fork of this process exits instead of sending too."""
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


Record = Callable[[TraceRequest, Callable[[str, int, int, int], None]], TraceRecording]


def main(load_record: Callable[[], Record]) -> NoReturn:
    """Answer one request with the loaded `record` function, and exit."""
    start_seconds, seconds, memory_bytes = map(float, sys.argv[1:])
    channel = ParentPipe(seconds)
    # A module that reads the command line sees none.
    del sys.argv[1:]
    _limit_memory(int(memory_bytes))
    channel.allow(start_seconds)
    channel.send(WorkerMessage(progress=("start", 0, 0, 0)).line)
    channel.send(_answer(channel, load_record))
    # Threads that the person's code left running would hold up an ordinary end.
    os._exit(0)


def _answer(channel: ParentPipe, load_record: Callable[[], Record]) -> bytes:
    """Return the last message of this process."""
    files: tuple[Path, ...] = ()
    try:
        request = TraceRequest.model_validate_json(channel.read_request())
        files = user_files(request)
        return WorkerMessage(result=load_record()(request, channel.progress)).line
    except BaseException as error:  # noqa: BLE001  # also sys.exit and KeyboardInterrupt of the person's code
        _limit_memory(None)
        return WorkerMessage(failure=explain_failure(error, channel.stage, files)).line


def _limit_memory(memory_bytes: int | None) -> None:
    """Set this process's memory limit; on Windows, which has none, only the parent watches it."""
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
