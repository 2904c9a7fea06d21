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

from planner.trace.messages import CHANNEL_LOST, WorkerMessage
from planner.trace.recording import TraceRecording
from planner.trace.request import TraceRequest
from planner.trace.user_code import user_files
from planner.trace.worker.refusals import explain_failure

_PAUSE_SECONDS: Final = 0.05


class ParentPipe:
    """Pipe to the parent: sends messages, one per line, and crash reports of Python's faulthandler.

    `seconds` is the time limit of the user's code. The parent keeps the request pipe open for as long as it wants the
    result: when the pipe closes, this process ends, with all processes that it started.
    """

    def __init__(self, seconds: float) -> None:
        self.stage = "start"
        self._seconds = seconds
        self._owner_pid = os.getpid()
        self._last_sent = 0.0
        self._messages = open(os.dup(1), "wb")  # noqa: SIM115  # open for as long as the process
        self._requests = open(os.dup(0), "rb")  # noqa: SIM115  # likewise
        # From here on, printed output goes to standard error, and standard input is empty.
        os.dup2(2, 1)
        null_input = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null_input, 0)
        os.close(null_input)
        faulthandler.enable(self._messages)

    def read_request(self) -> bytes:
        """Return the request; from then on this process exits when the parent goes away."""
        line = self._requests.readline()
        Thread(target=_exit_when_closed, args=(self._requests,), name="parent", daemon=True).start()
        return line

    def limit_time(self, seconds: float) -> None:
        """Exit after `seconds`, with a report of the stack."""
        faulthandler.dump_traceback_later(seconds, exit=True, file=self._messages)

    def send_progress(self, stage: str, step: int, steps: int, events: int) -> None:
        """Send progress; updates within one stage that follow within 50 ms are dropped.

        The first call starts the time limit of the user's code.
        """
        if self.stage == "start":
            self.limit_time(self._seconds)
        now = monotonic()
        if stage != self.stage or now - self._last_sent >= _PAUSE_SECONDS:
            self.stage, self._last_sent = stage, now
            self.send(WorkerMessage(progress=(stage, step, steps, events)).line)

    def send(self, line: bytes) -> None:
        """Send a message; a fork of this process exits instead of sending."""
        if os.getpid() != self._owner_pid:
            os._exit(1)
        try:
            self._messages.write(line)
            self._messages.flush()
        except OSError:
            os._exit(CHANNEL_LOST)


def _exit_when_closed(requests: BinaryIO) -> None:
    """Exit this process when the parent closes the pipe of requests."""
    requests.read()
    if sys.platform != "win32" and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


RecordFunction = Callable[[TraceRequest, Callable[[str, int, int, int], None]], TraceRecording]


def main(load_record: Callable[[], RecordFunction]) -> NoReturn:
    """Answer one request with the recording function that `load_record` imports, and exit."""
    start_seconds, seconds, memory_bytes = map(float, sys.argv[1:])
    channel = ParentPipe(seconds)
    # A module that reads the command line sees no arguments.
    del sys.argv[1:]
    _limit_memory(int(memory_bytes))
    channel.limit_time(start_seconds)
    channel.send(WorkerMessage(progress=("start", 0, 0, 0)).line)
    channel.send(_final_message(channel, load_record))
    # Threads that the user's code left running would delay an ordinary exit.
    os._exit(0)


def _final_message(channel: ParentPipe, load_record: Callable[[], RecordFunction]) -> bytes:
    """Return the final message to the parent: the recording, or the failure."""
    files: tuple[Path, ...] = ()
    try:
        request = TraceRequest.model_validate_json(channel.read_request())
        files = user_files(request)
        return WorkerMessage(result=load_record()(request, channel.send_progress)).line
    except BaseException as error:  # noqa: BLE001  # also sys.exit and KeyboardInterrupt of the user's code
        _limit_memory(None)
        return WorkerMessage(failure=explain_failure(error, channel.stage, files)).line


def _limit_memory(memory_bytes: int | None) -> None:
    """Set this process's memory limit in bytes; on Windows there is none, and only the parent watches the memory."""
    if sys.platform == "win32":
        return
    import resource

    _, hard_limit_bytes = resource.getrlimit(resource.RLIMIT_DATA)
    limit_bytes = hard_limit_bytes if memory_bytes is None else memory_bytes
    soft_limit_bytes = limit_bytes if hard_limit_bytes == resource.RLIM_INFINITY else min(limit_bytes, hard_limit_bytes)
    resource.setrlimit(resource.RLIMIT_DATA, (soft_limit_bytes, hard_limit_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _load_record() -> RecordFunction:
    """Import PyTorch and return the function that records a trace."""
    from planner.trace.worker.job import record_trace

    # This logger prints kernel exceptions in full, which are reported anyway.
    logging.getLogger("torch._subclasses.fake_tensor").disabled = True
    return record_trace


if __name__ == "__main__":
    main(_load_record)
