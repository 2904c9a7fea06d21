"""Child process in which the user's module runs, including all processes that it starts."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from io import BufferedReader, BufferedWriter
from pathlib import Path
from time import monotonic, sleep
from typing import Final, cast

import psutil

import planner
from planner.trace.request import TraceRequest

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
