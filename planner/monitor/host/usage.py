"""Usage of the host's processors, memory, disks and network."""

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import psutil

from planner.monitor.readings.metrics import HOST_BY_NAME, checked_reading
from planner.monitor.readings.reading import Cause, Reading, missing

# The counter moves about every 100 ms (ml.energy, on measuring GPU energy): over a second that is at most a tenth off.
WINDOW_SECONDS: Final = 1.0


class _Point(NamedTuple):
    at_seconds: float
    value: float


class CounterRates:
    """Growth rates of counters, by name, since the previous reading of each."""

    def __init__(self) -> None:
        self._last: dict[str, _Point] = {}

    def per_second(self, name: str, at_seconds: float, value: float) -> float | None:
        """Return the counter's growth per second; None at first, and after it was reset."""
        last = self._last.get(name)
        self._last[name] = _Point(at_seconds, value)
        if last is None or at_seconds <= last.at_seconds or value < last.value:
            return None
        return (value - last.value) / (at_seconds - last.at_seconds)


class EnergyMeter:
    """Mean power over the last second or more, from an energy counter."""

    def __init__(self, window_seconds: float = WINDOW_SECONDS) -> None:
        self._window = window_seconds
        self._points: deque[_Point] = deque()

    def watts(self, at_seconds: float, joules: float) -> float | None:
        """Record a counter reading and return the mean power; None at first, and after the counter was reset."""
        if self._points and joules < self._points[-1].value:
            self._points.clear()
        self._points.append(_Point(at_seconds, joules))
        # The oldest stays the latest point that is a whole window away.
        while len(self._points) > 2 and at_seconds - self._points[1].at_seconds >= self._window:
            self._points.popleft()
        first = self._points[0]
        elapsed = at_seconds - first.at_seconds
        return (joules - first.value) / elapsed if elapsed >= self._window * 0.9 else None


Times = Mapping[str, float]
"""Seconds that one CPU spent in each state."""

_COUNTERS: Final = (
    ("disk_read_bytes_per_s", "disk", "read_bytes"),
    ("disk_write_bytes_per_s", "disk", "write_bytes"),
    ("network_receive_bytes_per_s", "network", "bytes_recv"),
    ("network_transmit_bytes_per_s", "network", "bytes_sent"),
)
# The loop-back device carries what never leaves the machine.
_LOOP_BACKS: Final = ("lo", "lo0", "Loopback Pseudo-Interface 1")


class HostReadings(NamedTuple):
    """Quantities of the host, and the usage of each CPU."""

    readings: dict[str, Reading]
    cores: tuple[float, ...]


class HostReader:
    """Reads the host's usage; fractions and rates are since the previous reading."""

    def __init__(self) -> None:
        self._rates = CounterRates()
        self._times = _cpu_times()

    def read(self, now: float, *, slow: bool = True) -> HostReadings:
        """Return the host's readings; `now` is monotonic, in seconds."""
        times = _cpu_times()
        readings, cores = cpu_shares(self._times, times)
        self._times = times
        memory = psutil.virtual_memory()
        readings["memory_used_bytes"] = checked_reading(
            HOST_BY_NAME["memory_used_bytes"], memory.total - memory.available
        )
        readings["memory_available_bytes"] = checked_reading(HOST_BY_NAME["memory_available_bytes"], memory.available)
        if slow:
            readings["swap_used_bytes"] = checked_reading(HOST_BY_NAME["swap_used_bytes"], psutil.swap_memory().used)
        return HostReadings(readings | self._traffic(now), cores)

    def _traffic(self, now: float) -> dict[str, Reading]:
        counters = {"disk": _disk(), "network": _network()}
        readings = {}
        for name, source, attribute in _COUNTERS:
            counter = counters[source].get(attribute)
            if counter is None:
                readings[name] = missing(Cause.HIDDEN)
                continue
            rate = self._rates.per_second(name, now, counter)
            readings[name] = missing(Cause.NOT_YET) if rate is None else checked_reading(HOST_BY_NAME[name], rate)
        return readings


def cpu_shares(before: Sequence[Times], after: Sequence[Times]) -> tuple[dict[str, Reading], tuple[float, ...]]:
    """Return the usage of all CPUs together and of each, between two readings of the system's counters.

    **Formula** busy = 1 − (idle + waiting for disks) ÷ total, with guests' time counted once.
    """
    if len(before) != len(after):
        # A processor was added or removed.
        before = after
    spent = [_differences(first, second) for first, second in zip(before, after, strict=True)]
    everything = sum(all_of for all_of, _, _ in spent)
    if everything <= 0:
        nothing = missing(Cause.NOT_YET)
        return {"cpu_fraction": nothing, "io_wait_fraction": nothing}, tuple(0.0 for _ in after)
    waits = "iowait" in after[0]
    waiting = sum(waited for _, _, waited in spent) / everything
    return {
        "cpu_fraction": checked_reading(HOST_BY_NAME["cpu_fraction"], sum(busy for _, busy, _ in spent) / everything),
        "io_wait_fraction": checked_reading(HOST_BY_NAME["io_wait_fraction"], waiting)
        if waits
        else missing(Cause.NOT_SUPPORTED),
    }, tuple(busy / all_of if all_of > 0 else 0.0 for all_of, busy, _ in spent)


def _differences(before: Times, after: Times) -> tuple[float, float, float]:
    """Return the total time, the busy time and the time spent waiting for disks."""
    grown = {name: max(0.0, after[name] - before[name]) for name in after}
    # The kernel counts a guest's time as user's time too.
    everything = sum(grown.values()) - grown.get("guest", 0.0) - grown.get("guest_nice", 0.0)
    waiting = grown.get("iowait", 0.0)
    return everything, max(0.0, everything - grown["idle"] - waiting), waiting


def _cpu_times() -> tuple[Times, ...]:
    return tuple(times._asdict() for times in psutil.cpu_times(percpu=True))


def _disk() -> dict[str, int]:
    with suppress(OSError, RuntimeError):
        counters = psutil.disk_io_counters(nowrap=False)
        if counters is not None:
            return {"read_bytes": counters.read_bytes, "write_bytes": counters.write_bytes}
    return {}


def _network() -> dict[str, int]:
    with suppress(OSError):
        cards = psutil.net_io_counters(pernic=True, nowrap=False)
        real = [counters for name, counters in cards.items() if name not in _LOOP_BACKS]
        return {"bytes_recv": sum(one.bytes_recv for one in real), "bytes_sent": sum(one.bytes_sent for one in real)}
    return {}
