"""Details of processes as the operating system reports them."""

import getpass
from contextlib import suppress

import psutil

from planner.monitor.readings.sample import HostProcess

_MAX_COMMAND_CHARACTERS = 400


class HostProcesses:
    """Looks up processes by PID, in rounds.

    Within a round, repeated look-ups of a process (which may use several cards) return the same result. CPU usage is
    measured since the previous round.
    """

    def __init__(self) -> None:
        self._known: dict[int, psutil.Process] = {}
        self._results: dict[int, HostProcess | None] = {}
        self._user = _own_user_name()

    def look_up(self, pid: int) -> HostProcess | None:
        """Return the details of the process `pid`, None if there is no such process or access is denied."""
        if pid not in self._results:
            self._results[pid] = self._look_up(pid)
        return self._results[pid]

    def end_round(self) -> None:
        """Start a new round, and forget processes that were not looked up in the last round."""
        self._known = {pid: process for pid, process in self._known.items() if pid in self._results}
        self._results.clear()

    def _look_up(self, pid: int) -> HostProcess | None:
        known = self._known.get(pid)
        try:
            # A PID that was reassigned to another process is a new process.
            if known is None or not known.is_running():
                known = self._known[pid] = psutil.Process(pid)
                known.cpu_percent()
                return _process_details(known, None, self._user)
            return _process_details(known, known.cpu_percent() / 100, self._user)
        except (psutil.Error, OSError):
            self._known.pop(pid, None)
            return None


def _process_details(process: psutil.Process, cpu_fraction: float | None, own_user: str) -> HostProcess:
    with process.oneshot():
        user, command = "", ""
        # The system may hide the user name and command of other users' processes.
        with suppress(psutil.AccessDenied):
            user = process.username()
        with suppress(psutil.AccessDenied):
            command = _printable(" ".join(process.cmdline())[:_MAX_COMMAND_CHARACTERS])
        return HostProcess(
            name=_printable(process.name()),
            user=user,
            command=command,
            started_seconds=process.create_time(),
            cpu_fraction=cpu_fraction,
            memory_bytes=process.memory_info().rss,
            is_own=bool(user) and user == own_user,
        )


def _printable(text: str) -> str:
    """Return `text` without the surrogates that Python substitutes for bytes that are not UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _own_user_name() -> str:
    try:
        return str(psutil.Process().username())
    except (psutil.Error, KeyError):
        return getpass.getuser()
