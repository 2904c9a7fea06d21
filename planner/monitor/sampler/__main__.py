"""The sampler's process, `python -m planner.monitor.sampler SETTINGS`: its loop and its pipes to the supervisor."""

import faulthandler
import gc
import json
import os
import platform
import sys
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Condition, Lock, Thread
from time import monotonic, process_time, time
from typing import Any, BinaryIO, Final, NoReturn

import psutil

from planner import __version__
from planner.monitor.host.environment import PCI_DEVICES, detect_environment, find_cards
from planner.monitor.host.sleep import nvidia_sleep_policy
from planner.monitor.host.usage import HostReader
from planner.monitor.readings.faults import RESTART_EXIT_CODE
from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.sample import Sample, SamplingCost
from planner.monitor.readings.wire import (
    WIRE_VERSION,
    ClockAnswer,
    Hello,
    clock_line,
    hello_line,
    inventory_line,
    pending_call_line,
    sample_line,
)
from planner.monitor.sampler.all_cards import AllCards, SourceWatch, card_sources
from planner.monitor.sampler.nvidia_watch import NvidiaWatch
from planner.monitor.settings import BackOff, SamplerSettings, clamp_interval

PARENT_GONE_EXIT_CODE: Final = 74
"""Exit code if the parent process is gone: an input or output error (EX_IOERR)."""


class ParentChannel:
    """Pipes to the parent process: lines out, commands in.

    The command pipe stays open as long as the parent lives: when it closes, this process exits at once, even while a
    driver call hangs. The commands `where`, with the line that `answer_where` returns, and `clock` are also answered at
    once.
    """

    def __init__(self) -> None:
        self.answer_where: Callable[[], bytes] = partial(pending_call_line, None)
        self._lines = open(os.dup(1), "wb", buffering=0)  # noqa: SIM115  # open for as long as the process
        self._commands = open(os.dup(0), "rb")  # noqa: SIM115  # open for as long as the process
        self._sending = Lock()
        self._received_commands: deque[dict[str, Any]] = deque()
        self._changed = Condition()
        # Output of libraries must not be mixed with the lines.
        os.dup2(2, 1)
        # If the process crashes, Python's report goes to the parent.
        faulthandler.enable(self._lines, all_threads=False)
        Thread(target=self._read_commands, name="commands", daemon=True).start()

    def send(self, line: bytes) -> None:
        """Send a line; exit this process if the parent has closed the pipe."""
        try:
            with self._sending:
                _write_all(self._lines, line)
        except OSError:
            os._exit(PARENT_GONE_EXIT_CODE)

    def wait(self, seconds: float) -> dict[str, Any]:
        """Return the next command, or an empty command after the timeout."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._received_commands), timeout=max(0.0, seconds))
            return self._received_commands.popleft() if self._received_commands else {}

    def _read_commands(self) -> None:
        for line in self._commands:
            command = json.loads(line)
            if "where" in command:
                self.send(self.answer_where())
                continue
            if "clock" in command:
                self.send(clock_line(ClockAnswer(command["clock"], monotonic(), time())))
                continue
            with self._changed:
                self._received_commands.append(command)
                self._changed.notify()
        os._exit(0)


def _write_all(stream: BinaryIO, line: bytes) -> None:
    rest = memoryview(line)
    while rest:
        rest = rest[stream.write(rest) :]


def redirect_missing_streams() -> None:
    """Redirect standard streams that the parent closed to the null device."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  # open for as long as the process


# Share of an interval that slow readings may take before further GPUs must wait.
_SLOW_SHARE: Final = 0.25
# This process's memory changes slowly.
_MEMORY_SECONDS: Final = 10.0


class Sampler:
    """Samples the host and its GPUs periodically, until stopped."""

    def __init__(self, cards: AllCards, settings: SamplerSettings) -> None:
        self._cards, self._settings = cards, settings
        self._host = HostReader()
        self._cpu = CpuMeter()
        self._sent_inventory: Inventory | None = None
        self._is_starting = True
        self._next_slow = self._next_processes = 0.0

    def pending_call_message(self) -> bytes:
        """Return a JSON line with the driver call in progress; may be called from any thread."""
        return pending_call_line(self._cards.pending_call)

    def run(self, channel: ParentChannel) -> int:
        """Send samples until the parent sends `stop`, and return the exit code."""
        channel.answer_where = self.pending_call_message
        # Opening the driver can take many seconds: this first line shows that the process is alive.
        channel.send(inventory_line(self._cards.inventory()))
        due = monotonic()
        while not self._cards.must_restart:
            command = channel.wait(due - monotonic())
            if "stop" in command:
                self._cards.close()
                return 0
            if command:
                self._execute_command(command)
            if monotonic() < due:
                continue
            self._sample_once(channel)
            # Missed samples are not made up for.
            due = max(due + self._settings.fast_seconds, monotonic())
        self._cards.close()
        return RESTART_EXIT_CODE

    def _execute_command(self, command: dict[str, object]) -> None:
        if "release" in command:
            self._cards.release(time())
        elif "resume" in command:
            self._cards.resume()
            self._is_starting = True
        elif "interval" in command:
            self._settings = self._settings._replace(fast_seconds=clamp_interval(float(str(command["interval"]))))

    def _sample_once(self, channel: ParentChannel) -> None:
        began, wall, settings = monotonic(), time(), self._settings
        slow, processes = began >= self._next_slow, began >= self._next_processes
        if slow:
            self._next_slow = began + settings.slow_seconds
        if processes:
            self._next_processes = began + settings.process_seconds
        before = self._cards.usage
        host = self._host.read(began, slow=slow)
        budget = settings.fast_seconds * _SLOW_SHARE
        result = self._cards.sweep(began, wall, slow=slow, processes=processes, budget_seconds=budget)
        calls, driver, fields = (after - earlier for after, earlier in zip(self._cards.usage, before, strict=True))
        seconds, cpu = monotonic() - began, self._cpu.core_fraction()
        cost = SamplingCost(seconds, int(calls), driver, int(fields), cpu, self._cpu.memory_bytes)
        # What it takes to start, and to open a driver, says nothing about what reading takes.
        is_start, self._is_starting = self._is_starting or self._cards.opened_at == began, False
        self._send_inventory(channel)
        channel.send(
            sample_line(
                Sample(
                    began,
                    wall,
                    result.devices,
                    host.readings,
                    host.cores,
                    result.processes,
                    result.xids,
                    None if is_start else cost,
                    result.links,
                )
            )
        )

    def _send_inventory(self, channel: ParentChannel) -> None:
        inventory = self._cards.inventory()
        if inventory != self._sent_inventory:
            self._sent_inventory = inventory
            channel.send(inventory_line(inventory))


class CpuMeter:
    """CPU usage of this process since the previous reading, and its memory in bytes."""

    def __init__(self) -> None:
        self._process = psutil.Process(os.getpid())
        self._at, self._spent = monotonic(), process_time()
        self._memory_read_at = 0.0
        self.memory_bytes = self._process.memory_info().rss

    def core_fraction(self) -> float:
        """Return the CPU usage as a fraction of one core."""
        at, spent = monotonic(), process_time()
        elapsed, used = at - self._at, spent - self._spent
        self._at, self._spent = at, spent
        if at - self._memory_read_at >= _MEMORY_SECONDS:
            self._memory_read_at = at
            # Gives back freed tuples, of which CPython keeps thousands of each short length.
            gc.collect()
            self.memory_bytes = self._process.memory_info().rss
        return used / elapsed if elapsed > 0 else 0.0


ROOT_VARIABLE: Final = "GPU_PLANNER_SYSTEM_ROOT"
"""Environment variable with a folder to use as the root of PCI devices and container markers (for tests)."""

_LONGEST_RETRY_SECONDS: Final = 60.0
_LONGEST_SEARCH_SECONDS: Final = 300.0
_LONGEST_GREETING_SECONDS: Final = 60.0


def main(arguments: list[str]) -> NoReturn:
    """Run the sampler until the parent process sends `stop`."""
    redirect_missing_streams()
    settings = SamplerSettings(**json.loads(arguments[0]))
    _run_sampler(settings, ParentChannel())


def run_for_other_machine() -> NoReturn:
    """Run the sampler for a supervisor on another machine, which answers the greeting with its settings."""
    gc.enable()  # which commands run without
    channel = ParentChannel()
    channel.send(hello_line(Hello(WIRE_VERSION, f"gpu-planner {__version__}", platform.node())))
    settings = channel.wait(_LONGEST_GREETING_SECONDS).get("settings")
    if settings is None:
        os._exit(0)
    # A later version may send settings that this one does not have.
    known = {name: value for name, value in settings.items() if name in SamplerSettings._fields}
    _run_sampler(SamplerSettings(**known), channel)


def _run_sampler(settings: SamplerSettings, channel: ParentChannel) -> NoReturn:
    root = Path(os.environ.get(ROOT_VARIABLE, "/"))
    environment, pci_devices = detect_environment(root), root / PCI_DEVICES.relative_to("/")
    nvidia = NvidiaWatch(
        environment,
        nvidia_sleep_policy(pci_devices),
        first_try=monotonic() + settings.driver_after_seconds,
        retry=BackOff(settings.retry_seconds, _LONGEST_RETRY_SECONDS),
        look_again=BackOff(settings.look_again_seconds, _LONGEST_SEARCH_SECONDS),
        hang_seconds=settings.hang_seconds,
    )
    sources = [
        SourceWatch(
            source,
            settings.hang_seconds,
            settings.slow_seconds,
            BackOff(settings.look_again_seconds, _LONGEST_SEARCH_SECONDS),
        )
        for source in card_sources(root, environment)
    ]
    sampler = Sampler(AllCards(nvidia, sources, lambda: find_cards(pci_devices)), settings)
    # The objects so far are permanent: the garbage collector need not scan them again.
    gc.freeze()
    code = sampler.run(channel)
    # A library that hangs while it is unloaded would block a normal exit.
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
