"""Sampling loop and the pipe to the parent process."""

import faulthandler
import json
import os
import sys
from collections import deque
from collections.abc import Callable
from threading import Condition, Lock, Thread
from time import monotonic, process_time, time
from typing import Any, BinaryIO, Final

import psutil

from planner.monitor.host.usage import HostReader
from planner.monitor.readings.faults import RESTART_EXIT_CODE
from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.sample import Sample, SamplingCost
from planner.monitor.readings.wire import PendingCall, inventory_line, pending_call_line, sample_line
from planner.monitor.sampler.watch import CardWatch
from planner.monitor.settings import SamplerSettings, bounded

PARENT_GONE_EXIT_CODE: Final = 74
"""Exit code if the parent went away: an input or output error (EX_IOERR)."""


class ParentChannel:
    """Pipe to the parent: lines out, commands in.

    The command pipe is open for as long as the parent lives: when it closes, this process exits at once, even while a
    driver call hangs. The command `where` is answered at once too, by `answer_where`.
    """

    def __init__(self, answer_where: Callable[[], bytes]) -> None:
        self._answer_where = answer_where
        self._lines = open(os.dup(1), "wb", buffering=0)  # noqa: SIM115  # open for as long as the process
        self._commands = open(os.dup(0), "rb")  # noqa: SIM115  # so too
        self._sending = Lock()
        self._arrived: deque[dict[str, Any]] = deque()
        self._changed = Condition()
        # What a library prints must not come between the lines.
        os.dup2(2, 1)
        # Where the process crashes, Python's report goes to the parent.
        faulthandler.enable(self._lines, all_threads=False)
        Thread(target=self._listen, name="commands", daemon=True).start()

    def send(self, line: bytes) -> None:
        """Send a line; exit this process if nobody reads it."""
        try:
            with self._sending:
                _write_all(self._lines, line)
        except OSError:
            os._exit(PARENT_GONE_EXIT_CODE)

    def wait(self, seconds: float) -> dict[str, Any]:
        """Return the next command, or an empty one after the timeout."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._arrived), timeout=max(0.0, seconds))
            return self._arrived.popleft() if self._arrived else {}

    def _listen(self) -> None:
        for line in self._commands:
            command = json.loads(line)
            if "where" in command:
                self.send(self._answer_where())
                continue
            with self._changed:
                self._arrived.append(command)
                self._changed.notify()
        os._exit(0)


def _write_all(stream: BinaryIO, line: bytes) -> None:
    rest = memoryview(line)
    while rest:
        rest = rest[stream.write(rest) :]


def redirect_missing_streams() -> None:
    """Redirect standard streams to the null device if the parent closed them."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  # open for as long as the process


# Of an interval, what reading slowly may take before the next cards have to wait.
_SLOW_SHARE: Final = 0.25
# This process's memory changes slowly.
_MEMORY_SECONDS: Final = 10.0


class Sampler:
    """Samples the host and its cards periodically, until stopped."""

    def __init__(self, cards: CardWatch, settings: SamplerSettings) -> None:
        self._cards, self._settings = cards, settings
        self._host = HostReader()
        self._cpu = CpuMeter()
        self._sent_inventory: Inventory | None = None
        self._next_slow = self._next_processes = 0.0

    def where(self) -> bytes:
        """Return the line that reports the driver call in progress; may be called from any thread."""
        nvml = self._cards.nvml
        busy: PendingCall | None = None if nvml is None else nvml.pending_call
        return pending_call_line(busy)

    def run(self, channel: ParentChannel) -> int:
        """Send samples until the parent sends `stop`, and return the exit code."""
        # Opening the driver can take many seconds: that this process lives is told before.
        channel.send(inventory_line(self._cards.inventory()))
        due = monotonic()
        while not self._cards.must_restart:
            command = channel.wait(due - monotonic())
            if "stop" in command:
                self._cards.close()
                return 0
            if command:
                self._execute(command)
            if monotonic() < due:
                continue
            self._tick(channel)
            # What was missed is not made up for.
            due = max(due + self._settings.fast_seconds, monotonic())
        self._cards.close()
        return RESTART_EXIT_CODE

    def _execute(self, command: dict[str, object]) -> None:
        if "release" in command:
            self._cards.release(time())
        elif "resume" in command:
            self._cards.resume()
        elif "interval" in command:
            self._settings = self._settings._replace(fast_seconds=bounded(float(str(command["interval"]))))

    def _tick(self, channel: ParentChannel) -> None:
        began, wall, settings = monotonic(), time(), self._settings
        slow, processes = began >= self._next_slow, began >= self._next_processes
        if slow:
            self._next_slow = began + settings.slow_seconds
        if processes:
            self._next_processes = began + settings.process_seconds
        before = self._spent()
        host = self._host.read(began, slow=slow)
        budget = settings.fast_seconds * _SLOW_SHARE
        result = self._cards.sweep(began, wall, slow=slow, processes=processes, budget_seconds=budget)
        calls, driver, fields = (now - then for now, then in zip(self._spent(), before, strict=True))
        cost = SamplingCost(
            monotonic() - began, int(calls), driver, int(fields), self._cpu.fraction(), self._cpu.memory_bytes
        )
        self._send_inventory(channel)
        channel.send(
            sample_line(
                Sample(began, wall, result.devices, host.readings, host.cores, result.processes, result.xids, cost)
            )
        )

    def _spent(self) -> tuple[float, float, float]:
        nvml = self._cards.nvml
        return (0, 0.0, 0) if nvml is None else (nvml.calls, nvml.driver_seconds, nvml.field_microseconds)

    def _send_inventory(self, channel: ParentChannel) -> None:
        inventory = self._cards.inventory()
        if inventory != self._sent_inventory:
            self._sent_inventory = inventory
            channel.send(inventory_line(inventory))


class CpuMeter:
    """This process's own CPU usage since the previous reading, and its memory."""

    def __init__(self) -> None:
        self._process = psutil.Process(os.getpid())
        self._at, self._spent = monotonic(), process_time()
        self._looked_at = 0.0
        self.memory_bytes = self._process.memory_info().rss

    def fraction(self) -> float:
        """Return the fraction of one core."""
        at, spent = monotonic(), process_time()
        elapsed, used = at - self._at, spent - self._spent
        self._at, self._spent = at, spent
        if at - self._looked_at >= _MEMORY_SECONDS:
            self._looked_at = at
            self.memory_bytes = self._process.memory_info().rss
        return used / elapsed if elapsed > 0 else 0.0
