"""The rhythm: what is read when, and what is told of it."""

import os
from time import monotonic, process_time, time
from typing import Final

import psutil

from planner.monitor.busy import Busy
from planner.monitor.endings import RESTART
from planner.monitor.host import Host
from planner.monitor.inventory import Inventory
from planner.monitor.sample import Cost, Sample
from planner.monitor.sampler.channel import Channel
from planner.monitor.sampler.watch import CardWatch
from planner.monitor.settings import Settings, bounded
from planner.monitor.wire import busy_line, inventory_line, sample_line

# Of an interval, what reading slowly may take before the next cards have to wait.
_SLOW_SHARE: Final = 0.25
# This process's memory changes slowly.
_MEMORY_SECONDS: Final = 10.0


class Sampler:
    """Reads the machine and its cards again and again, until told to stop."""

    def __init__(self, cards: CardWatch, settings: Settings) -> None:
        self._cards, self._settings = cards, settings
        self._host = Host()
        self._cpu = CpuMeter()
        self._told: Inventory | None = None
        self._next_slow = self._next_processes = 0.0

    def where(self) -> bytes:
        """Return the line that says which call into the driver is under way; from any thread."""
        nvml = self._cards.nvml
        busy: Busy | None = None if nvml is None else nvml.busy
        return busy_line(busy)

    def run(self, channel: Channel) -> int:
        """Tell samples until the parent says stop, and return the exit code."""
        # Opening the driver can take many seconds: that this process lives is told before.
        channel.send(inventory_line(self._cards.inventory()))
        due = monotonic()
        while not self._cards.must_restart:
            command = channel.wait(due - monotonic())
            if "stop" in command:
                self._cards.close()
                return 0
            if command:
                self._obey(command)
            if monotonic() < due:
                continue
            self._tick(channel)
            # What was missed is not made up for.
            due = max(due + self._settings.fast_seconds, monotonic())
        self._cards.close()
        return RESTART

    def _obey(self, command: dict[str, object]) -> None:
        if "release" in command:
            self._cards.release(time())
        elif "resume" in command:
            self._cards.resume()
        elif "interval" in command:
            self._settings = self._settings._replace(fast_seconds=bounded(float(str(command["interval"]))))

    def _tick(self, channel: Channel) -> None:
        began, wall, settings = monotonic(), time(), self._settings
        slow, processes = began >= self._next_slow, began >= self._next_processes
        if slow:
            self._next_slow = began + settings.slow_seconds
        if processes:
            self._next_processes = began + settings.process_seconds
        before = self._spent()
        host = self._host.read(began, slow=slow)
        budget = settings.fast_seconds * _SLOW_SHARE
        swept = self._cards.sweep(began, wall, slow=slow, processes=processes, budget_seconds=budget)
        calls, driver, fields = (now - then for now, then in zip(self._spent(), before, strict=True))
        cost = Cost(monotonic() - began, int(calls), driver, int(fields), self._cpu.fraction(), self._cpu.memory_bytes)
        self._tell_inventory(channel)
        channel.send(
            sample_line(
                Sample(began, wall, swept.devices, host.readings, host.cores, swept.processes, swept.xids, cost)
            )
        )

    def _spent(self) -> tuple[float, float, float]:
        nvml = self._cards.nvml
        return (0, 0.0, 0) if nvml is None else (nvml.calls, nvml.driver_seconds, nvml.field_microseconds)

    def _tell_inventory(self, channel: Channel) -> None:
        inventory = self._cards.inventory()
        if inventory != self._told:
            self._told = inventory
            channel.send(inventory_line(inventory))


class CpuMeter:
    """This process's own share of a core since it was last asked, and its memory."""

    def __init__(self) -> None:
        self._process = psutil.Process(os.getpid())
        self._at, self._spent = monotonic(), process_time()
        self._looked_at = 0.0
        self.memory_bytes = self._process.memory_info().rss

    def fraction(self) -> float:
        """Return the share of a core."""
        at, spent = monotonic(), process_time()
        elapsed, used = at - self._at, spent - self._spent
        self._at, self._spent = at, spent
        if at - self._looked_at >= _MEMORY_SECONDS:
            self._looked_at = at
            self.memory_bytes = self._process.memory_info().rss
        return used / elapsed if elapsed > 0 else 0.0
