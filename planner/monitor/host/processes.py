"""Single processes: what the operating system knows of them, and how one is ended."""

import getpass
from contextlib import suppress
from typing import Final

import psutil

from planner.errors import PlannerError
from planner.monitor.readings.sample import CardProcess, HostProcess

_LONGEST_COMMAND = 400


class HostProcesses:
    """Looks processes up by their numbers, in rounds.

    Within a round a process that is asked for again (it uses several cards) is the same; its share of the CPU is since
    the round before.
    """

    def __init__(self) -> None:
        self._known: dict[int, psutil.Process] = {}
        self._found: dict[int, HostProcess | None] = {}
        self._user = _own_user()

    def look_up(self, pid: int) -> HostProcess | None:
        """Return what is known of a process; None if there is none of that number, or it may not be looked at."""
        if pid not in self._found:
            self._found[pid] = self._look_up(pid)
        return self._found[pid]

    def end_round(self) -> None:
        """Begin a new round, and forget the processes that were not looked up in this one."""
        self._known = {pid: process for pid, process in self._known.items() if pid in self._found}
        self._found.clear()

    def _look_up(self, pid: int) -> HostProcess | None:
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


# What two looks at a process's start may differ by: clock ticks are hundredths of a second.
_SAME_START_SECONDS: Final = 0.05


def why_not(process: CardProcess, *, may_end_others: bool = False) -> str:
    """Return why a process may not be ended from here, as a sentence; empty if it may."""
    if process.host is None:
        return "This process is not one of this machine, or of another process-id space: its number means nothing here."
    if not process.is_reliable:
        return "What the driver tells of this process cannot be true, so it might end another one."
    if not process.host.is_own and not may_end_others:
        return f"It belongs to {process.host.user or 'another user'}; the settings allow to end your own ones only."
    return ""


def terminate(process: CardProcess, *, may_end_others: bool = False, by_force: bool = False) -> None:
    """Ask a process to end, or end it `by_force`.

    Raises:
        PlannerError: If it may not be ended, is not there any more, or another has its number by now.
    """
    refusal = why_not(process, may_end_others=may_end_others)
    if refusal or process.host is None:
        raise PlannerError(f"Process {process.pid} was left alone.", refusal)
    try:
        found = psutil.Process(process.pid)
        if abs(found.create_time() - process.host.started_seconds) > _SAME_START_SECONDS:
            raise PlannerError(f"Process {process.pid} was left alone.", "Another process has its number by now.")
        # psutil itself looks once more whether the number still belongs to the process.
        found.kill() if by_force else found.terminate()
    except psutil.NoSuchProcess as error:
        raise PlannerError(f"Process {process.pid} has already ended.") from error
    except psutil.AccessDenied as error:
        hint = "Only its owner or an administrator may end it."
        raise PlannerError(f"Process {process.pid} could not be ended.", hint) from error
