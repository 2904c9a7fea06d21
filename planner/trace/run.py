"""Runs a trace in a child process, with limits on time and memory; a crash of the module does not end the parent."""

import importlib.util
import os
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from time import monotonic
from typing import Final

from pydantic import Field

from planner.base import Spec
from planner.errors import TraceError
from planner.installation import extra_command
from planner.trace.child.messages import TraceFailure, TraceProgress, WorkerOutcome, explain_exit, read_messages
from planner.trace.child.worker_process import WorkerProcess, available_memory_bytes
from planner.trace.consent import user_files, with_absolute_paths
from planner.trace.recording import TraceRecording
from planner.trace.request import TraceRequest
from planner.units import GIB

__all__ = ["BackgroundTrace", "TraceLimits", "TraceProgress", "missing_packages_hint", "start_trace", "trace"]

START_SECONDS: Final = 120.0
"""Time limit for loading PyTorch, even from a cold disk."""

_MAX_DEFAULT_MEMORY_BYTES: Final = 8 * GIB
_CHECK_INTERVAL_SECONDS: Final = 0.1
# The child's own timer reports where it hung; this process kills the child only if that timer failed.
_GRACE_SECONDS: Final = 1.0
_PIPE_CLOSING_SECONDS: Final = 10.0
_MAX_PRINTED_BYTES: Final = 1 << 16
_TIMEOUT_HINT: Final = "Raise the time limit."
_MEMORY_HINT: Final = "Traced tensors use no memory; check what else the module allocates, or raise the limit."
_BROKEN_PIPE_HINT: Final = "The module's code writes to files that it did not open."


class TraceLimits(Spec):
    """Limits of a trace: `seconds` once PyTorch is loaded, and the total host memory of the trace's processes.

    The default memory limit is half of the available host memory, at most 8 GiB: fake tensors need no memory.
    """

    seconds: float = Field(default=600, gt=0, le=86_400)
    memory_bytes: int | None = Field(default=None, gt=0)


_DEFAULT_LIMITS: Final = TraceLimits()


class BackgroundTrace:
    """A trace running in the background; see `start_trace`."""

    def __init__(
        self,
        request: TraceRequest,
        limits: TraceLimits,
        on_progress: Callable[[TraceProgress], None] | None = None,
        worker: str = "planner.trace.worker",
    ) -> None:
        self._original_request, self._request = request, with_absolute_paths(request)
        self._seconds = limits.seconds
        self._memory_bytes = limits.memory_bytes or min(_MAX_DEFAULT_MEMORY_BYTES, available_memory_bytes() // 2)
        self._on_progress = on_progress
        self._stage = "start"
        self._deadline = monotonic() + START_SECONDS + _GRACE_SECONDS
        self._outcome = WorkerOutcome()
        self._printed_output = b""
        self._error: Exception | None = None
        self._watch_ended, self._cancelled, self._done = Event(), Event(), Event()
        try:
            self._child = WorkerProcess(self._request, worker, (START_SECONDS, self._seconds, self._memory_bytes))
        except OSError as error:
            raise TraceError("start", f"no process can be started: {error}", environment=True) from error
        self._readers = (_start_thread(self._exchange_messages), _start_thread(self._collect_printed_output))
        self._watchdog = _start_thread(self._watch_child)

    def cancel(self) -> None:
        """Cancel the trace and all its processes; `result` then raises. Thread-safe and idempotent."""
        self._cancelled.set()
        self._watch_ended.set()

    def result(self) -> TraceRecording:
        """Wait for the trace to end, and return its recording.

        Raises:
            TraceError: If there is no recording; the error's stage is `cancelled` after `cancel`.
        """
        try:
            # Waiting without a timeout would ignore Ctrl+C on Windows.
            while not self._done.wait(1.0):
                pass
        except BaseException:
            self.cancel()
            raise
        self._watchdog.join()
        recording = self._outcome.recording
        if self._error is not None or recording is None:
            raise self._error or TraceError(self._stage, "the trace ended without a result")
        return recording.model_copy(update={"request": self._original_request})

    def _watch_child(self) -> None:
        """Wait for the worker to end, and keep its failure, if any, as the trace's error."""
        try:
            failure = self._wait_for_end()
            if failure is not None and self._error is None:
                self._error = TraceError(
                    **failure.model_dump(), printed=self._printed_output.decode("utf-8", "replace")
                )
        finally:
            self._done.set()

    def _wait_for_end(self) -> TraceFailure | None:
        """Wait until the worker exits or exceeds a limit, end it, and return its failure, if any."""
        limit_failure = None
        while not (
            limit_failure or self._child.exit_code is not None or self._watch_ended.wait(_CHECK_INTERVAL_SECONDS)
        ):
            limit_failure = self._exceeded_limit()
        if not (limit_failure or self._cancelled.is_set() or self._error or self._outcome.is_complete):
            # The child's pipe closes a moment before its exit code is known.
            self._child.wait(_GRACE_SECONDS)
        exit_code = self._child.exit_code
        self._child.end()
        for reader in self._readers:
            reader.join(_PIPE_CLOSING_SECONDS)
        return self._failure_after_exit(limit_failure, exit_code)

    def _exceeded_limit(self) -> TraceFailure | None:
        """Return the failure if the worker has exceeded its time or memory limit."""
        if monotonic() > self._deadline:
            return TraceFailure(
                stage=self._stage,
                reason=f"the module did not finish within {self._seconds:g} seconds",
                hint=_TIMEOUT_HINT,
            )
        if self._child.memory_bytes() > self._memory_bytes:
            limit = f"{self._memory_bytes / GIB:.1f} GiB"
            return TraceFailure(
                stage=self._stage,
                reason=f"the module took more than {limit} of this machine's memory",
                hint=_MEMORY_HINT,
            )
        return None

    def _failure_after_exit(self, limit_failure: TraceFailure | None, exit_code: int | None) -> TraceFailure | None:
        """Return why the trace failed, or None if the worker sent a recording."""
        outcome = self._outcome
        if self._cancelled.is_set():
            return TraceFailure(stage="cancelled", reason="the trace was cancelled")
        if outcome.is_complete:
            return outcome.failure
        if outcome.protocol_error:
            return TraceFailure(
                stage=self._stage, reason=f"the result cannot be read: {outcome.protocol_error}", hint=_BROKEN_PIPE_HINT
            )
        files = user_files(self._request)
        return limit_failure or explain_exit(self._stage, exit_code, outcome.report, self._seconds, files)

    def _exchange_messages(self) -> None:
        """Send the request to the worker, and read the messages that it sends back."""
        try:
            # If the child exited before it read its request, its exit explains the failure.
            with suppress(OSError):
                self._child.requests.write(self._request.model_dump_json().encode() + b"\n")
                self._child.requests.flush()
            with self._child.messages as messages:
                self._outcome = read_messages(messages, self._note_progress)
        except Exception as error:  # noqa: BLE001  # what `on_progress` raises belongs to the caller of `result`
            self._error = error
        finally:
            self._watch_ended.set()

    def _note_progress(self, progress: TraceProgress) -> None:
        """Remember the worker's stage, and pass the progress on to the caller."""
        if self._stage == "start" != progress.stage:
            self._deadline = monotonic() + self._seconds + _GRACE_SECONDS
        self._stage = progress.stage
        if self._on_progress is not None:
            self._on_progress(progress)

    def _collect_printed_output(self) -> None:
        """Collect the last output that the user's module prints."""
        with self._child.printed as printed:
            while chunk := printed.read1(_MAX_PRINTED_BYTES):
                self._printed_output = (self._printed_output + chunk)[-_MAX_PRINTED_BYTES:]


def start_trace(
    request: TraceRequest,
    limits: TraceLimits = _DEFAULT_LIMITS,
    on_progress: Callable[[TraceProgress], None] | None = None,
) -> BackgroundTrace:
    """Start a trace in a child process and return at once; `on_progress` is called in another thread.

    This runs the user's code: ask for consent first (`content_digest` identifies the version that the user agreed to).

    Raises:
        TraceError: If PyTorch is not installed (the error's `environment` is then true), or a file does not exist.
    """
    missing = missing_packages_hint(config=request.target.kind == "config")
    if missing is not None:
        raise TraceError("start", missing, environment=True)
    folder = request.target.folder
    if folder and not os.path.isdir(folder):
        raise TraceError("load", f"there is no folder {folder}", "Check the working folder of the script.")
    for file in user_files(request):
        if not file.is_file():
            raise TraceError("load", f"there is no file {file}", "Check the spelling, or give the full path.")
    return BackgroundTrace(request, limits, on_progress)


def trace(
    request: TraceRequest,
    limits: TraceLimits = _DEFAULT_LIMITS,
    on_progress: Callable[[TraceProgress], None] | None = None,
) -> TraceRecording:
    """Trace in a child process, wait for the end, and return the recording; see `start_trace`.

    Raises:
        TraceError: If there is no recording; the error's stage, reason, hint and traceback say why.
    """
    return start_trace(request, limits, on_progress).result()


def missing_packages_hint(config: bool = False) -> str | None:
    """Return how to install PyTorch, or transformers for a `config` target, if it is missing; else None."""
    packages = {"torch": "PyTorch", "transformers": "Hugging Face transformers"} if config else {"torch": "PyTorch"}
    missing = [title for name, title in packages.items() if importlib.util.find_spec(name) is None]
    if not missing:
        return None
    return f"tracing needs {' and '.join(missing)}; install it with: {extra_command('torch')}"


def _start_thread(work: Callable[[], None]) -> Thread:
    thread = Thread(target=work, name=f"trace{work.__name__}", daemon=True)
    thread.start()
    return thread
