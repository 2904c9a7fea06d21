"""Runs a trace in a child process with all that it starts, with limits on time and memory.

A crash of the module does not end the parent.
"""

import importlib.util
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from io import BufferedReader, BufferedWriter
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep
from typing import Final, cast

import psutil
from pydantic import Field

import planner
from planner.base import Spec
from planner.errors import TraceError
from planner.installation import extra_command
from planner.trace.messages import TraceFailure, TraceProgress, WorkerOutcome, explain_exit, read_messages
from planner.trace.recording import TraceRecording
from planner.trace.request import TraceRequest
from planner.trace.user_code import user_files, with_absolute_paths
from planner.units import GIB

_WORKER_ID_VARIABLE: Final = "GPU_PLANNER_TRACE"
_KILL_TIMEOUT_SECONDS: Final = 10.0
_KILL_INTERVAL_SECONDS: Final = 0.01
_SITE_FOLDERS: Final = ("site-packages", "dist-packages")
_SET_VARIABLES: Final[Mapping[str, str]] = {
    "CUDA_VISIBLE_DEVICES": "",
    "HIP_VISIBLE_DEVICES": "",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    # A script opens no windows, and sends nothing to a service that follows its runs.
    "MPLBACKEND": "Agg",
    "WANDB_MODE": "disabled",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONBREAKPOINT": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    # Output printed just before a crash is not lost.
    "PYTHONUNBUFFERED": "1",
    "PYTHONUTF8": "1",
}
_DROPPED_VARIABLES: Final = ("PYTHONWARNINGS", "PYTHONINSPECT")


class WorkerProcess:
    """A running worker with its pipes; it exits when `requests` is closed, and so when this process ends."""

    def __init__(self, request: TraceRequest, worker: str, arguments: tuple[float, ...]) -> None:
        # Processes that the child starts inherit this mark, by which `end` finds them.
        self._worker_id = uuid.uuid4().hex
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", worker, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=_working_directory(request),
            env=_environment_variables(self._worker_id),
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )

        self.requests = cast("BufferedWriter", self._process.stdin)
        """The pipe that the child reads its request from."""
        self.messages = cast("BufferedReader", self._process.stdout)
        """The pipe with the child's messages."""
        self.printed = cast("BufferedReader", self._process.stderr)
        """The pipe with the child's printed output."""

    @property
    def exit_code(self) -> int | None:
        """Return the worker's exit code: negative for a signal, None while it runs."""
        return self._process.poll()

    def memory_bytes(self) -> int:
        """Return the resident memory of the worker and its child processes in bytes."""
        total = 0
        with suppress(psutil.Error):
            child = psutil.Process(self._process.pid)
            for process in (child, *child.children(recursive=True)):
                with suppress(psutil.Error):
                    total += process.memory_info().rss
        return total

    def wait(self, seconds: float) -> None:
        """Wait for the worker to exit, up to a timeout."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)

    def end(self) -> None:
        """Kill the worker and every process that it started, and wait until they are gone."""
        if self._process.poll() is None:
            self._kill_process_group()
        # A process started by another while that one is being killed is killed in the next round.
        deadline = monotonic() + _KILL_TIMEOUT_SECONDS
        while (remaining := list(self._worker_and_children())) and monotonic() < deadline:
            for process in remaining:
                with suppress(psutil.Error):
                    process.kill()
            sleep(_KILL_INTERVAL_SECONDS)
        with suppress(OSError):
            self.requests.close()

    def _kill_process_group(self) -> None:
        """Kill the worker and the processes in its group."""
        if sys.platform == "win32":
            self._process.kill()
        else:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _worker_and_children(self) -> Iterator[psutil.Process]:
        """Yield the running processes that have this worker's id in their environment: itself, and what it started."""
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if (
                    process.environ().get(_WORKER_ID_VARIABLE) == self._worker_id
                    and process.status() != psutil.STATUS_ZOMBIE
                ):
                    yield process


def available_memory_bytes() -> int:
    """Return the host memory available on this machine in bytes."""
    return int(psutil.virtual_memory().available)


def _working_directory(request: TraceRequest) -> str | None:
    """Return the worker's working directory: the folder of a module's file, as if it were run there, or a script's."""
    target = request.target
    return str(Path(target.place).parent) if target.kind == "file" else target.folder or None


def _environment_variables(worker_id: str) -> dict[str, str]:
    """Return the worker's environment variables: no GPU, no model downloads, no bytecode, and its `worker_id`."""
    variables = {name: value for name, value in os.environ.items() if name not in _DROPPED_VARIABLES}
    import_root = Path(planner.__file__).parent.parent
    if import_root.name not in _SITE_FOLDERS:
        # Needed where GPU Planner runs from a folder without being installed.
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, (variables.get("PYTHONPATH"), str(import_root))))
    return {**variables, **_SET_VARIABLES, _WORKER_ID_VARIABLE: worker_id}


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
