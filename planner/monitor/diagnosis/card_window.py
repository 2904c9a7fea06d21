"""Readings of one card and its host over the last minutes, and quantities derived from these readings."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from operator import add
from typing import Final

from planner.monitor.diagnosis.time_series import ACTIVE_UTILIZATION, STATISTICS, TimeSeries
from planner.monitor.readings.faults import FaultKind
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.metrics import BY_NAME
from planner.monitor.readings.protocols import DiagnosisSource
from planner.monitor.readings.sample import CardProcess

# PCI Express Base Specification: transfers a second of one lane, and the share of bits that are data (8b/10b,
# 128b/130b; from generation 6 on 236 of 256 bytes of a flit carry packets).
_LANE_RATES: Final = {
    1: (2.5e9, 0.8),
    2: (5e9, 0.8),
    3: (8e9, 128 / 130),
    4: (16e9, 128 / 130),
    5: (32e9, 128 / 130),
    6: (64e9, 236 / 256),
}


def link_bytes_per_s(generation: float, lanes: float) -> float | None:
    """Return a PCIe link's bandwidth in one direction, in bytes per second; None for an unknown generation.

    **Formula** transfers per second × share of data bits × lanes ÷ 8.

    **Source** PCI Express Base Specification. Packet headers take a further tenth or more.
    """
    lane = _LANE_RATES.get(int(generation))
    return None if lane is None else lane[0] * lane[1] * lanes / 8


HOST_PREFIX: Final = "host."
"""Prefix of host quantities; some card quantities have the same names."""
LONG_SUFFIX: Final = ".long"
"""Suffix of quantities that cover ten minutes instead of two."""

HIGH_CPU: Final = 0.9
HIGH_WAIT: Final = 0.5
"""CPU use and disk wait (fractions) above which the host is the bottleneck while the GPU is below 10 %.

**Source** AWS SageMaker Debugger, CPUBottleneck and IOBottleneck.
"""

ReadSeries = Callable[[str], TimeSeries | None]
"""Function that returns the readings of the named quantity, None if there are none."""


class CardWindow:
    """Readings of one card and its host over a time window.

    `read` takes the names of `planner.monitor.readings.metrics`, with the prefix `host.` for host quantities.
    `processes` are the processes on the card, None if unknown. `peers` are the utilizations of other cards that run the
    same task.
    """

    def __init__(
        self,
        device: Device,
        read: ReadSeries,
        processes: tuple[CardProcess, ...] | None = None,
        cores: int | None = None,
        peers: tuple[TimeSeries, ...] = (),
    ) -> None:
        self.device, self.processes, self.cores, self.peers = device, processes, cores, peers
        self._read, self._quantities = read, dict[str, TimeSeries | None]()

    def quantity(self, name: str) -> TimeSeries | None:
        """Return the time series of a measured or derived quantity in the window, None if the quantity is unknown."""
        if name not in self._quantities:
            derive = DERIVED_QUANTITIES.get(name)
            self._quantities[name] = self._read(name) if derive is None else derive(self)
        return self._quantities[name]

    def statistic(self, name: str, statistic: str) -> float | None:
        """Return a statistic (a key of `STATISTICS`) of a quantity, None if the quantity is unknown."""
        series = self.quantity(name)
        return None if series is None else STATISTICS[statistic](series)

    def since(self, start: float) -> "CardWindow":
        """Return the part of the window from `start` on; ten-minute quantities are not cut.

        A quantity without a reading since `start` keeps its last value.
        """
        return self._cut_window(lambda series: series.since(start) or series.last)

    def until(self, end: float) -> "CardWindow":
        """Return the part of the window before `end`; ten-minute quantities are not cut.

        A quantity without a reading before `end` keeps its first value.
        """
        return self._cut_window(lambda series: series.until(end) or series.first)

    def _cut_window(self, cut: Callable[[TimeSeries], TimeSeries]) -> "CardWindow":
        def read(name: str) -> TimeSeries | None:
            series = self.quantity(name)
            return series if series is None or name.endswith(LONG_SUFFIX) else cut(series)

        return CardWindow(self.device, read, self.processes, self.cores, tuple(map(cut, self.peers)))


def _utilization_series(window: CardWindow) -> TimeSeries | None:
    return window.quantity("utilization_fraction") or window.quantity("graphics_active_fraction")


def _memory_used_fraction(window: CardWindow) -> TimeSeries | None:
    return _fraction_of_total_memory(window, "memory_free_bytes", "memory_used_bytes")


def _long_window_memory_fraction(window: CardWindow) -> TimeSeries | None:
    return _fraction_of_total_memory(window, "", f"memory_used_bytes{LONG_SUFFIX}")


def _long_window_duration_series(window: CardWindow) -> TimeSeries | None:
    used = window.quantity(f"memory_used_bytes{LONG_SUFFIX}")
    return None if used is None else TimeSeries.single_value(used.seconds)


def _fraction_of_total_memory(window: CardWindow, free_name: str, used_name: str) -> TimeSeries | None:
    """Return the used fraction of the card's memory from the quantity of free or of used memory; None if unknown."""
    total = window.device.fact("memory_total_bytes")
    free, used = window.quantity(free_name), window.quantity(used_name)
    if not total:
        return None
    if free is not None:
        return free.combine(lambda value: 1 - value / total)
    return None if used is None else used.combine(lambda value: value / total)


def _unused_memory_bytes(window: CardWindow) -> TimeSeries | None:
    total, full = window.device.fact("memory_total_bytes"), window.quantity("memory_full_fraction")
    return None if not total or full is None else full.combine(lambda share: (1 - share) * total)


def _clock_fraction(window: CardWindow) -> TimeSeries | None:
    """Return the SM clock as a fraction of the card's maximum SM clock; None if unknown."""
    clock, most = window.quantity("sm_clock_mhz"), window.device.fact("sm_clock_most_mhz")
    return clock.combine(lambda value: value / most) if clock is not None and most else None


def _link_fraction(sent: float, received: float, generation: float, width: float) -> float | None:
    """Return the busier direction's traffic as a fraction of the PCIe link's bandwidth; None if that is unknown."""
    bandwidth = link_bytes_per_s(generation, width)
    return max(sent, received) / bandwidth if bandwidth else None


def _waiting_cores(window: CardWindow) -> TimeSeries | None:
    """Return the number of CPU cores that wait for disks, over time; None if unknown."""
    waiting, cores = window.quantity("host.io_wait_fraction"), window.cores
    return waiting.combine(lambda share: share * cores) if waiting is not None and cores else None


def _combined_quantity(compute: Callable[..., float | None], *names: str) -> Callable[[CardWindow], TimeSeries | None]:
    """Return a function that applies `compute` to simultaneous values, None if a quantity is unknown."""

    def derived_series(window: CardWindow) -> TimeSeries | None:
        quantities = (window.quantity(name) for name in names)
        known = [series for series in quantities if series is not None]
        return known[0].combine(compute, *known[1:]) if len(known) == len(names) else None

    return derived_series


def _clock_reason_indicator(bits: int, *, excluded_bits: int = 0) -> Callable[[CardWindow], TimeSeries | None]:
    """Return a reader of a 0/1 series: whether NVML's clock reasons have one of `bits` and none of `excluded_bits`."""
    return _combined_quantity(
        lambda value: float(bool(int(value) & bits and not int(value) & excluded_bits)), "clock_reasons"
    )


def _compute_processes(window: CardWindow) -> tuple[CardProcess, ...]:
    """Return the processes in the window that compute on the card, without graphics and unreliable entries."""
    return tuple(process for process in window.processes or () if process.kind != "graphics" and process.is_reliable)


def _compute_process_memory_bytes(window: CardWindow) -> TimeSeries | None:
    """Return the memory of compute processes in bytes; a desktop's graphics processes do not count."""
    amounts = [process.memory_bytes.value for process in _compute_processes(window)]
    known = [value for value in amounts if value is not None]
    if window.processes is None or len(known) < len(amounts):
        return None
    return TimeSeries.single_value(sum(known))


def _busiest_process_cores(window: CardWindow) -> TimeSeries | None:
    """Return the CPU use in cores of the compute process that uses the CPU most; None if unknown."""
    shares = [process.host.cpu_fraction for process in _compute_processes(window) if process.host is not None]
    known = [share for share in shares if share is not None]
    return TimeSeries.single_value(max(known)) if known else None


def _in_use_indicator(window: CardWindow) -> TimeSeries | None:
    """Return 1 if the card was active in the window or a process holds memory on it, else 0."""
    use, memory = window.quantity("use_fraction"), window.quantity("held_memory_bytes")
    works = use is not None and max(use.values) >= ACTIVE_UTILIZATION
    return TimeSeries.single_value(float(works or (memory is not None and memory.values[0] > 0)))


_HISTOGRAM_BINS: Final = 10


def _compared_with_busiest_peer(
    compare: Callable[[TimeSeries, TimeSeries], float],
) -> Callable[[CardWindow], TimeSeries | None]:
    def comparison(window: CardWindow) -> TimeSeries | None:
        use = window.quantity("use_fraction")
        if use is None or not window.peers:
            return None
        return TimeSeries.single_value(compare(use, max(window.peers, key=lambda peer: peer.mean)))

    return comparison


def _histogram_distance(first: TimeSeries, second: TimeSeries) -> float:
    """Return the distance between the histograms of two series: half the sum of absolute differences, 0 to 1."""
    return (
        sum(
            abs(left - right)
            for left, right in zip(_histogram_fractions(first), _histogram_fractions(second), strict=True)
        )
        / 2
    )


def _histogram_fractions(series: TimeSeries) -> list[float]:
    counts = [0] * _HISTOGRAM_BINS
    for value in series.values:
        counts[min(_HISTOGRAM_BINS - 1, int(value * _HISTOGRAM_BINS))] += 1
    return [count / len(series.values) for count in counts]


_PCIE: Final = ("pcie_transmit_bytes_per_s", "pcie_receive_bytes_per_s")
DERIVED_QUANTITIES: Final[Mapping[str, Callable[[CardWindow], TimeSeries | None]]] = {
    "use_fraction": _utilization_series,
    "memory_full_fraction": _memory_used_fraction,
    "memory_left_bytes": _unused_memory_bytes,
    "memory_long_fraction": _long_window_memory_fraction,
    "memory_long_seconds": _long_window_duration_series,
    "power_of_limit_fraction": _combined_quantity(
        lambda drawn, most: drawn / most if most else None, "power_watts", "power_limit_watts"
    ),
    "clock_of_most_fraction": _clock_fraction,
    "pcie_bytes_per_s": _combined_quantity(add, *_PCIE),
    "pcie_of_link_fraction": _combined_quantity(_link_fraction, *_PCIE, "pcie_generation", "pcie_width"),
    "media_fraction": _combined_quantity(max, "encoder_fraction", "decoder_fraction"),
    "starved_by_cpu": _combined_quantity(
        lambda use, cpu: float(use < ACTIVE_UTILIZATION and cpu > HIGH_CPU), "use_fraction", "host.cpu_fraction"
    ),
    "starved_by_disk": _combined_quantity(
        lambda use, wait: float(use < ACTIVE_UTILIZATION and wait > HIGH_WAIT), "use_fraction", "host.io_wait_fraction"
    ),
    "waiting_cores": _waiting_cores,
    "slowed_by_heat": _clock_reason_indicator(0x20 | 0x40),
    "slowed_by_supply": _clock_reason_indicator(0x80),
    "slowed_by_card": _clock_reason_indicator(0x8, excluded_bits=0x40 | 0x80),
    # Only while the card works: on an idle one the bit is meaningless.
    "held_by_power_limit": _combined_quantity(
        lambda use, bits: float(use >= ACTIVE_UTILIZATION and bool(int(bits) & 0x4)), "use_fraction", "clock_reasons"
    ),
    "held_memory_bytes": _compute_process_memory_bytes,
    "busiest_process_cores": _busiest_process_cores,
    "is_in_use": _in_use_indicator,
    "peer_distance": _compared_with_busiest_peer(_histogram_distance),
    "peer_lag": _compared_with_busiest_peer(lambda own, peer: peer.mean - own.mean),
}
"""Quantities derived from readings, by name."""

WINDOW_SECONDS: Final = 120.0
"""Length of the diagnosed window: enough for a saw-tooth of slow batches, short enough to notice a change."""
LONG_WINDOW_SECONDS: Final = 600.0
"""Length of the window that is searched for memory growth."""

_HOST: Final = "host"
# Two values per second are enough; ten per second would only cost time.
_MAX_WINDOW_VALUES: Final = 240
# A slow reading stays valid for this long.
_VALID_SECONDS: Final = 60.0
# Only the current processes are known, so a window that ended longer ago has none.
_CURRENT_SECONDS: Final = 15.0
# torchrun and deepspeed start one process per card, whose commands differ only in this option.
_RANK: Final = re.compile(r"--local[-_]rank[= ]\d+")


def read_window(source: DiagnosisSource, device: Device, at: float, seconds: float = WINDOW_SECONDS) -> CardWindow:
    """Return the window of card and host readings that ends at `at`, in monotonic seconds."""

    def read(name: str) -> TimeSeries | None:
        if name.startswith(HOST_PREFIX):
            return _time_series(source, _HOST, name.removeprefix(HOST_PREFIX), at - seconds, at)
        if name.endswith(LONG_SUFFIX):
            return _time_series(source, device.uuid, name.removesuffix(LONG_SUFFIX), at - LONG_WINDOW_SECONDS, at)
        return _time_series(source, device.uuid, name, at - seconds, at)

    is_now = source.end is not None and abs(source.end - at) <= _CURRENT_SECONDS
    processes = _visible_processes(source) if is_now else None
    own = None if processes is None else tuple(process for process in processes if process.uuid == device.uuid)
    peers = () if processes is None else tuple(_peer_utilizations(source, device, processes, at - seconds, at))
    return CardWindow(device, read, own, len(source.latest.cores) or None, peers)


def _time_series(source: DiagnosisSource, owner: str, metric: str, start: float, end: float) -> TimeSeries | None:
    readings = source.series(owner, metric)
    first, stop = bisect_left(readings.times, start), bisect_right(readings.times, end)
    known = BY_NAME.get(metric)
    if known is not None and known.cadence == "slow" and first and readings.times[first - 1] >= start - _VALID_SECONDS:
        first -= 1
    if first >= stop:
        return None
    chosen = slice(first, stop, 1 + (stop - first) // _MAX_WINDOW_VALUES)
    return TimeSeries(tuple(map(float, readings.times[chosen])), tuple(map(float, readings.values[chosen])))


def _visible_processes(source: DiagnosisSource) -> tuple[CardProcess, ...] | None:
    """Return all processes, None if the operating system hides processes."""
    is_hidden = any(fault.kind is FaultKind.WSL for fault in source.inventory.faults)
    return None if is_hidden and not source.latest.processes else source.latest.processes


def _peer_utilizations(
    source: DiagnosisSource, device: Device, processes: tuple[CardProcess, ...], start: float, end: float
) -> Iterator[TimeSeries]:
    """Yield the utilization of every other card on which the same user runs the same command."""
    tasks = {_task_identity(process) for process in processes if process.uuid == device.uuid} - {None}
    others = {process.uuid for process in processes if process.uuid != device.uuid and _task_identity(process) in tasks}
    for uuid in sorted(others):
        use = _time_series(source, uuid, "utilization_fraction", start, end)
        if use is not None:
            yield use


def _task_identity(process: CardProcess) -> tuple[str, str] | None:
    """Return user and command line, without the rank, by which processes of one job are matched; None if unknown."""
    if process.kind == "graphics" or process.host is None or not process.host.command:
        return None
    return process.host.user, _RANK.sub("", process.host.command)
