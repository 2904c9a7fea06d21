"""Usage of the host's CPUs, memory, disks and network."""

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import psutil

from planner.monitor.readings.metrics import HOST_BY_NAME, checked_reading
from planner.monitor.readings.reading import Cause, Reading, missing

# The energy counter is updated about every 100 ms (ml.energy, on measuring GPU energy): an error of at most a tenth
# over a second.
WINDOW_SECONDS: Final = 1.0


class _CounterReading(NamedTuple):
    at_seconds: float
    value: float


class CounterRates:
    """Growth rates of named counters since the previous reading of the same counter."""

    def __init__(self) -> None:
        self._last: dict[str, _CounterReading] = {}

    def per_second(self, name: str, at_seconds: float, value: float) -> float | None:
        """Return the counter's growth per second; None at the first reading and after a counter reset."""
        last = self._last.get(name)
        self._last[name] = _CounterReading(at_seconds, value)
        if last is None or at_seconds <= last.at_seconds or value < last.value:
            return None
        return (value - last.value) / (at_seconds - last.at_seconds)


class EnergyMeter:
    """Mean power over the last second or more, from an energy counter."""

    def __init__(self, window_seconds: float = WINDOW_SECONDS) -> None:
        self._window = window_seconds
        self._points: deque[_CounterReading] = deque()

    def watts(self, at_seconds: float, joules: float) -> float | None:
        """Record a counter reading and return the mean power in W; None at first and after a counter reset."""
        if self._points and joules < self._points[-1].value:
            self._points.clear()
        self._points.append(_CounterReading(at_seconds, joules))
        # The oldest kept reading is the latest one that is a whole window old.
        while len(self._points) > 2 and at_seconds - self._points[1].at_seconds >= self._window:
            self._points.popleft()
        first = self._points[0]
        elapsed = at_seconds - first.at_seconds
        return (joules - first.value) / elapsed if elapsed >= self._window * 0.9 else None


CpuSeconds = Mapping[str, float]
"""Seconds that one CPU spent in each state (user, idle, iowait…), by name of the state."""

_COUNTERS: Final = (
    ("disk_read_bytes_per_s", "disk", "read_bytes"),
    ("disk_write_bytes_per_s", "disk", "write_bytes"),
    ("network_receive_bytes_per_s", "network", "bytes_recv"),
    ("network_transmit_bytes_per_s", "network", "bytes_sent"),
)
# Traffic on the loop-back device never leaves the machine.
_LOOPBACK_DEVICES: Final = ("lo", "lo0", "Loopback Pseudo-Interface 1")


class HostReadings(NamedTuple):
    """Readings of host quantities by name, and the busy fraction of each CPU core."""

    readings: dict[str, Reading]
    cores: tuple[float, ...]


class HostReader:
    """Reader of the host's usage, with fractions and rates since the previous reading."""

    def __init__(self) -> None:
        self._rates = CounterRates()
        self._times = _seconds_by_cpu()

    def read(self, now: float, *, slow: bool = True) -> HostReadings:
        """Return the host's readings; `now` is monotonic, in seconds."""
        times = _seconds_by_cpu()
        readings, cores = cpu_shares(self._times, times)
        self._times = times
        memory = psutil.virtual_memory()
        readings["memory_used_bytes"] = checked_reading(
            HOST_BY_NAME["memory_used_bytes"], memory.total - memory.available
        )
        readings["memory_available_bytes"] = checked_reading(HOST_BY_NAME["memory_available_bytes"], memory.available)
        if slow:
            readings["swap_used_bytes"] = checked_reading(HOST_BY_NAME["swap_used_bytes"], psutil.swap_memory().used)
        return HostReadings(readings | self._traffic_readings(now), cores)

    def _traffic_readings(self, now: float) -> dict[str, Reading]:
        counters = {"disk": _disk_counters(), "network": _network_counters()}
        readings = {}
        for name, source, attribute in _COUNTERS:
            counter = counters[source].get(attribute)
            if counter is None:
                readings[name] = missing(Cause.HIDDEN)
                continue
            rate = self._rates.per_second(name, now, counter)
            readings[name] = missing(Cause.NOT_YET) if rate is None else checked_reading(HOST_BY_NAME[name], rate)
        return readings


def cpu_shares(
    before: Sequence[CpuSeconds], after: Sequence[CpuSeconds]
) -> tuple[dict[str, Reading], tuple[float, ...]]:
    """Return total CPU readings and the busy fraction of each CPU, between two readings of the system's counters.

    **Formula** busy = 1 − (idle + waiting for disks) ÷ total, with guests' time counted once.
    """
    if len(before) != len(after):
        # A CPU was added or removed.
        before = after
    spent = [_total_busy_and_wait_seconds(first, second) for first, second in zip(before, after, strict=True)]
    total_seconds = sum(total for total, _, _ in spent)
    if total_seconds <= 0:
        nothing = missing(Cause.NOT_YET)
        return {"cpu_fraction": nothing, "io_wait_fraction": nothing}, tuple(0.0 for _ in after)
    waits = "iowait" in after[0]
    waiting = sum(waited for _, _, waited in spent) / total_seconds
    return {
        "cpu_fraction": checked_reading(
            HOST_BY_NAME["cpu_fraction"], sum(busy for _, busy, _ in spent) / total_seconds
        ),
        "io_wait_fraction": checked_reading(HOST_BY_NAME["io_wait_fraction"], waiting)
        if waits
        else missing(Cause.NOT_SUPPORTED),
    }, tuple(busy / total if total > 0 else 0.0 for total, busy, _ in spent)


def _total_busy_and_wait_seconds(before: CpuSeconds, after: CpuSeconds) -> tuple[float, float, float]:
    grown = {name: max(0.0, after[name] - before[name]) for name in after}
    # The kernel counts guest time as user time too.
    total_seconds = sum(grown.values()) - grown.get("guest", 0.0) - grown.get("guest_nice", 0.0)
    waiting = grown.get("iowait", 0.0)
    return total_seconds, max(0.0, total_seconds - grown["idle"] - waiting), waiting


def _seconds_by_cpu() -> tuple[CpuSeconds, ...]:
    return tuple(times._asdict() for times in psutil.cpu_times(percpu=True))


def _disk_counters() -> dict[str, int]:
    with suppress(OSError, RuntimeError):
        counters = psutil.disk_io_counters(nowrap=False)
        if counters is not None:
            return {name: getattr(counters, name) for name in ("read_bytes", "write_bytes")}
    return {}


def _network_counters() -> dict[str, int]:
    with suppress(OSError):
        cards = psutil.net_io_counters(pernic=True, nowrap=False)
        real = [counters for name, counters in cards.items() if name not in _LOOPBACK_DEVICES]
        return {
            "bytes_recv": sum(card.bytes_recv for card in real),
            "bytes_sent": sum(card.bytes_sent for card in real),
        }
    return {}
