"""Details of processes as the operating system reports them, and how one is ended."""

import getpass
from contextlib import suppress
from time import monotonic
from typing import Final, NamedTuple

import psutil

from planner.errors import PlannerError
from planner.monitor.readings.sample import CardProcess, HostProcess

_MAX_COMMAND_CHARACTERS = 400


class HostProcesses:
    """Looks up processes by PID, in rounds.

    Within a round, repeated look-ups of a process (which may use several GPUs) return the same result. CPU usage is
    measured since the previous round.
    """

    def __init__(self) -> None:
        self._known: dict[int, psutil.Process] = {}
        self._users: dict[int, str] = {}
        self._trees: dict[int, _TreeSeconds] = {}
        self._parents: dict[int, int] = {}
        self._children: dict[int, list[int]] | None = None
        self._results: dict[int, HostProcess | None] = {}
        self._user = _own_user_name()

    def look_up(self, pid: int) -> HostProcess | None:
        """Return the details of the process `pid`, None if there is no such process or access is denied."""
        if pid not in self._results:
            self._results[pid] = self._look_up(pid)
        return self._results[pid]

    def end_round(self) -> None:
        """Start a new round, and forget processes that were not looked up in the last round."""
        self._trees = {pid: tree for pid, tree in self._trees.items() if pid in self._results}
        self._users = {pid: user for pid, user in self._users.items() if pid in self._results}
        in_trees = self._results.keys() | {pid for tree in self._trees.values() for pid in tree.by_pid}
        self._known = {pid: process for pid, process in self._known.items() if pid in in_trees}
        self._results.clear()
        self._children = None

    def _look_up(self, pid: int) -> HostProcess | None:
        before = self._known.get(pid) if pid in self._users else None
        try:
            # A PID that was reassigned to another process is a new process.
            process = before if before is not None and before.is_running() else self._begin(pid)
            with process.oneshot():
                cpu = process.cpu_percent() / 100
                return self._details(process, None if process is not before else cpu, self._tree_cpu_fraction(process))
        except (psutil.Error, OSError):
            self._known.pop(pid, None)
            return None

    def _begin(self, pid: int) -> psutil.Process:
        process = self._known[pid] = psutil.Process(pid)
        self._users[pid] = _user_name(process)
        self._trees.pop(pid, None)
        return process

    def _details(
        self, process: psutil.Process, cpu_fraction: float | None, tree_cpu_fraction: float | None
    ) -> HostProcess:
        user, command = self._users[process.pid], ""
        # The system may hide the command of other users' processes.
        with suppress(psutil.AccessDenied):
            command = _printable(" ".join(process.cmdline())[:_MAX_COMMAND_CHARACTERS])
        return HostProcess(
            name=_printable(process.name()),
            user=user,
            command=command,
            started_seconds=process.create_time(),
            cpu_fraction=cpu_fraction,
            memory_bytes=process.memory_info().rss,
            is_own=bool(user) and user == self._user,
            tree_cpu_fraction=tree_cpu_fraction,
        )

    def _tree_cpu_fraction(self, root: psutil.Process) -> float | None:
        """Return the CPU usage of a process and all its descendants since the previous round; None in the first."""
        before, now = self._trees.get(root.pid), _TreeSeconds(monotonic(), self._seconds_by_descendant(root))
        self._trees[root.pid] = now
        if before is None or now.at <= before.at:
            return None
        # What is not known from before was started since.
        spent = sum(max(0.0, seconds - before.by_pid.get(pid, 0.0)) for pid, seconds in now.by_pid.items())
        return spent / (now.at - before.at)

    def _seconds_by_descendant(self, root: psutil.Process) -> dict[int, float]:
        if self._children is None:
            self._children = self._children_by_parent()
        found: dict[int, float] = {}
        waiting = [root.pid]
        while waiting:
            pid = waiting.pop()
            with suppress(psutil.Error, OSError):
                process = self._known.get(pid) or self._known.setdefault(pid, psutil.Process(pid))
                times = process.cpu_times()
                found[pid] = times.user + times.system
            waiting += (child for child in self._children.get(pid, ()) if child not in found)
        return found

    def _children_by_parent(self) -> dict[int, list[int]]:
        """Return the PIDs of all processes by their parent's.

        Asked are only those that began since the previous round, and those whose parent ended: hundreds of processes
        would take longer than everything else.
        """
        pids = {0, *psutil.pids()}
        self._parents = {pid: parent for pid, parent in self._parents.items() if pid in pids and parent in pids}
        for pid in pids - self._parents.keys() - {0}:
            with suppress(psutil.Error, OSError):
                self._parents[pid] = psutil.Process(pid).ppid()
        children: dict[int, list[int]] = {}
        for pid, parent in self._parents.items():
            children.setdefault(parent, []).append(pid)
        return children


class _TreeSeconds(NamedTuple):
    """CPU seconds of a process and of each of its descendants, at a monotonic time."""

    at: float
    by_pid: dict[int, float]


def _user_name(process: psutil.Process) -> str:
    with suppress(psutil.AccessDenied):
        return str(process.username())
    return ""


def _printable(text: str) -> str:
    """Return `text` without the surrogates that Python substitutes for bytes that are not UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _own_user_name() -> str:
    try:
        return str(psutil.Process().username())
    except (psutil.Error, KeyError):
        return getpass.getuser()


# Two readings of a start time may differ by this much: clock ticks are hundredths of a second.
_START_TIME_TOLERANCE_SECONDS: Final = 0.05


def termination_refusal(process: CardProcess, *, may_end_others: bool = False) -> str:
    """Return a sentence on why the process may not be terminated from here, empty if termination is allowed."""
    if process.host is None:
        return "This process belongs to another machine or PID namespace; its PID is not valid here."
    if not process.is_reliable:
        return "The driver's data on this process are implausible, so another process might be ended."
    if not process.host.is_own and not may_end_others:
        owner = process.host.user or "another user"
        return f"The process belongs to {owner}; the settings only allow ending your own processes."
    return ""


def terminate(process: CardProcess, *, may_end_others: bool = False, by_force: bool = False) -> None:
    """Terminate a process on a GPU, or kill the process with `by_force`.

    Raises:
        PlannerError: If the process may not be terminated, has ended, or its PID now belongs to another process.
    """
    refusal = termination_refusal(process, may_end_others=may_end_others)
    if refusal or process.host is None:
        raise PlannerError(f"Process {process.pid} was not ended.", refusal)
    try:
        running = psutil.Process(process.pid)
        if abs(running.create_time() - process.host.started_seconds) > _START_TIME_TOLERANCE_SECONDS:
            raise PlannerError(f"Process {process.pid} was not ended.", "Its PID now belongs to another process.")
        # psutil itself checks once more that the PID still belongs to this process.
        running.kill() if by_force else running.terminate()
    except psutil.NoSuchProcess as error:
        raise PlannerError(f"Process {process.pid} has already ended.") from error
    except psutil.AccessDenied as error:
        hint = "Only its owner or an administrator may end it."
        raise PlannerError(f"Process {process.pid} could not be ended.", hint) from error
