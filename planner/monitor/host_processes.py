"""What the operating system knows of single processes."""

import getpass
from contextlib import suppress

import psutil

from planner.monitor.process import HostProcess

_LONGEST_COMMAND = 400


class HostProcesses:
    """Looks processes up by their numbers; the share of the CPU is since the last look at the same process."""

    def __init__(self) -> None:
        self._known: dict[int, psutil.Process] = {}
        self._looked_up: set[int] = set()
        self._user = _own_user()

    def look_up(self, pid: int) -> HostProcess | None:
        """Return what is known of a process; None if there is none of that number, or it may not be looked at."""
        self._looked_up.add(pid)
        known = self._known.get(pid)
        try:
            # A number that was given to another process since is a new process.
            if known is None or not known.is_running():
                known = self._known[pid] = psutil.Process(pid)
                known.cpu_percent()
                return _describe(known, None, self._user)
            return _describe(known, known.cpu_percent() / 100, self._user)
        except (psutil.Error, OSError):
            self._known.pop(pid, None)
            return None

    def forget_unseen(self) -> None:
        """Forget the processes that were not looked up since this was last called."""
        self._known = {pid: process for pid, process in self._known.items() if pid in self._looked_up}
        self._looked_up.clear()


def _describe(process: psutil.Process, cpu_fraction: float | None, own_user: str) -> HostProcess:
    with process.oneshot():
        user, command = "", ""
        # Another user's command and name may be kept from us.
        with suppress(psutil.AccessDenied):
            user = process.username()
        with suppress(psutil.AccessDenied):
            command = _printable(" ".join(process.cmdline())[:_LONGEST_COMMAND])
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
    """Return `text` without the stand-ins that Python puts for bytes that are no UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _own_user() -> str:
    try:
        return str(psutil.Process().username())
    except (psutil.Error, KeyError):
        return getpass.getuser()
