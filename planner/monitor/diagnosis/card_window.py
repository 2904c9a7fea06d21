"""Readings of one GPU and its host over the last minutes, and quantities derived from these readings."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from operator import add
from typing import Final, NamedTuple

from planner.monitor.diagnosis.time_series import ACTIVE_UTILIZATION, STATISTICS, TimeSeries
from planner.monitor.readings.faults import FaultKind
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.metrics import BY_NAME
from planner.monitor.readings.protocols import DiagnosisSource
from planner.monitor.readings.sample import CardProcess
from planner.units import GIB

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
"""Prefix of host quantities; some GPU quantities have the same names."""
LONG_SUFFIX: Final = ".long"
"""Suffix of quantities that cover ten minutes instead of two."""
HOUR_SUFFIX: Final = ".hour"
"""Suffix of quantities that cover an hour."""

HIGH_CPU: Final = 0.9
HIGH_WAIT: Final = 0.5
"""CPU use and disk wait (fractions) above which the host is the bottleneck while the GPU is below 10 %.

**Source** AWS SageMaker Debugger, CPUBottleneck and IOBottleneck.
"""


class Peer(NamedTuple):
    """Another GPU that runs the same job: its utilization, and its power as a fraction of its limit."""

    use: TimeSeries
    power: TimeSeries | None = None
    memory_controller: TimeSeries | None = None


ReadSeries = Callable[[str], TimeSeries | None]
"""Function that returns the readings of the named quantity, None if there are none."""


class CardWindow:
    """Readings of one GPU and its host over a time window.

    `read` takes the names of `planner.monitor.readings.metrics`, with the prefix `host.` for host quantities.
    `processes` are the processes on the GPU, None if unknown. `peers` are the other GPUs that run the same job.
    """

    def __init__(
        self,
        device: Device,
        read: ReadSeries,
        processes: tuple[CardProcess, ...] | None = None,
        cores: int | None = None,
        peers: tuple[Peer, ...] = (),
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
            return series if series is None or name.endswith((LONG_SUFFIX, HOUR_SUFFIX)) else cut(series)

        peers = (
            Peer(cut(peer.use), *(None if series is None else cut(series) for series in peer[1:]))
            for peer in self.peers
        )
        return CardWindow(self.device, read, self.processes, self.cores, (*peers,))


def _utilization_series(window: CardWindow) -> TimeSeries | None:
    return window.quantity("utilization_fraction") or window.quantity("graphics_active_fraction")


def _memory_used_fraction(window: CardWindow) -> TimeSeries | None:
    return _fraction_of_total_memory(window, "memory_free_bytes", "memory_used_bytes")


def _long_window_memory_fraction(window: CardWindow) -> TimeSeries | None:
    return _fraction_of_total_memory(window, "", f"memory_used_bytes{LONG_SUFFIX}")


def _duration_of(name: str) -> Callable[[CardWindow], TimeSeries | None]:
    """Return a reader of the seconds that the readings of a quantity cover."""

    def duration_series(window: CardWindow) -> TimeSeries | None:
        series = window.quantity(name)
        return None if series is None else TimeSeries.single_value(series.seconds)

    return duration_series


def _fraction_of_total_memory(window: CardWindow, free_name: str, used_name: str) -> TimeSeries | None:
    """Return the used fraction of the GPU's memory from the quantity of free or of used memory; None if unknown."""
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
    clock, most = window.quantity("sm_clock_mhz"), window.device.fact("sm_clock_most_mhz")
    return clock.combine(lambda value: value / most) if clock is not None and most else None


def _link_fraction(sent: float, received: float, generation: float, width: float) -> float | None:
    """Return the busier direction's traffic as a fraction of the PCIe link's bandwidth; None if that is unknown."""
    bandwidth = link_bytes_per_s(generation, width)
    return max(sent, received) / bandwidth if bandwidth else None


def _waiting_cores(window: CardWindow) -> TimeSeries | None:
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
    """Return the processes in the window that compute on the GPU, without graphics and unreliable entries."""
    return tuple(process for process in window.processes or () if process.kind != "graphics" and process.is_reliable)


def _compute_process_memory_bytes(window: CardWindow) -> TimeSeries | None:
    """Return the memory of compute processes in bytes; a desktop's graphics processes do not count."""
    amounts = [process.memory_bytes.value for process in _compute_processes(window)]
    known = [value for value in amounts if value is not None]
    if window.processes is None or len(known) < len(amounts):
        return None
    return TimeSeries.single_value(sum(known))


def _busiest_process_cores(window: CardWindow) -> TimeSeries | None:
    shares = [process.host.cpu_fraction for process in _compute_processes(window) if process.host is not None]
    known = [share for share in shares if share is not None]
    return TimeSeries.single_value(max(known)) if known else None


def _memory_without_graphics_bytes(window: CardWindow) -> TimeSeries | None:
    """Return the memory in use that no graphics process holds; None if such a process does not tell its memory."""
    used = window.quantity("memory_used_bytes")
    desktop = [process.memory_bytes.value for process in window.processes or () if process.kind == "graphics"]
    known = [value for value in desktop if value is not None]
    return None if used is None or len(known) < len(desktop) else used.combine(lambda value: value - sum(known))


# Below half of a full CPU, other programs use most of it.
_LEAST_JOB_SHARE: Final = 0.5


def _job_cpu_fraction(window: CardWindow) -> TimeSeries | None:
    """Return the used fraction of all CPU cores; None if the processes on the GPU are known to use less than half.

    The processes that prepare their data, which are their children, count as theirs.
    """
    hosts = [process.host for process in _compute_processes(window) if process.host is not None]
    trees = [host.tree_cpu_fraction for host in hosts if host.tree_cpu_fraction is not None]
    if trees and window.cores and sum(trees) < _LEAST_JOB_SHARE * window.cores:
        return None
    return window.quantity("host.cpu_fraction")


def _in_use_indicator(window: CardWindow) -> TimeSeries | None:
    """Return 1 if the GPU was active in the window or a process holds memory on it, else 0."""
    use, memory = window.quantity("use_fraction"), window.quantity("held_memory_bytes")
    works = use is not None and max(use.values) >= ACTIVE_UTILIZATION
    return TimeSeries.single_value(float(works or (memory is not None and memory.values[0] > 0)))


def _graphics_only_indicator(window: CardWindow) -> TimeSeries | None:
    """Return 1 if all processes on the GPU only draw, 0 if one computes; None without known processes."""
    if not window.processes:
        return None
    return TimeSeries.single_value(float(all(process.kind == "graphics" for process in window.processes)))


_HISTOGRAM_BINS: Final = 10


def _compared_with_busiest_peer(
    compare: Callable[[TimeSeries, TimeSeries], float],
) -> Callable[[CardWindow], TimeSeries | None]:
    def comparison(window: CardWindow) -> TimeSeries | None:
        use = window.quantity("use_fraction")
        if use is None or not window.peers:
            return None
        return TimeSeries.single_value(compare(use, max((peer.use for peer in window.peers), key=lambda one: one.mean)))

    return comparison


def _power_beyond_peers(window: CardWindow) -> TimeSeries | None:
    """Return by how much the GPU's power exceeds that of the peer that draws most, as fractions of their limits."""
    own, others = window.quantity("power_of_limit_fraction"), [peer.power for peer in window.peers]
    known = [power.quantile(0.5) for power in others if power is not None]
    return None if own is None or not known else TimeSeries.single_value(own.quantile(0.5) - max(known))


def _least_busy_of_job(window: CardWindow) -> TimeSeries | None:
    """Return the lowest utilization of the job's GPUs over the last half minute; None without peers."""
    own = window.quantity("use_fraction")
    if own is None or not window.peers:
        return None
    return TimeSeries.single_value(min(one.lately for one in (own, *(peer.use for peer in window.peers))))


def _most_of_job(name: str, of_peer: Callable[[Peer], TimeSeries | None]) -> Callable[[CardWindow], TimeSeries | None]:
    """Return a reader of a quantity's mean over the last half minute, of the GPU of the job where it is highest."""

    def highest(window: CardWindow) -> TimeSeries | None:
        every = (window.quantity(name), *map(of_peer, window.peers))
        known = [series.lately for series in every if series is not None]
        return TimeSeries.single_value(max(known)) if window.peers and len(known) == len(every) else None

    return highest


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


def _negated(series: TimeSeries | None) -> TimeSeries | None:
    return None if series is None else series.combine(lambda value: -value)


def _link_figure(name: str) -> Callable[[CardWindow], TimeSeries | None]:
    """Return a reader of a property of the PCIe link; if it is not read, of the highest that the GPU supports."""

    def figure(window: CardWindow) -> TimeSeries | None:
        current, most = window.quantity(name), window.device.fact(f"{name}_most")
        return current if current is not None or most is None else TimeSeries.single_value(most)

    return figure


def _unknown_link_traffic(window: CardWindow) -> TimeSeries | None:
    """Return the busier direction's traffic in bytes per second if the link's bandwidth is not known, else None."""
    sent, received = map(window.quantity, _PCIE)
    if sent is None or received is None or window.quantity("pcie_of_link_fraction") is not None:
        return None
    return sent.combine(max, received)


_PCIE: Final = ("pcie_transmit_bytes_per_s", "pcie_receive_bytes_per_s")
DERIVED_QUANTITIES: Final[Mapping[str, Callable[[CardWindow], TimeSeries | None]]] = {
    "use_fraction": _utilization_series,
    "memory_full_fraction": _memory_used_fraction,
    "memory_left_bytes": _unused_memory_bytes,
    "memory_long_fraction": _long_window_memory_fraction,
    "memory_long_seconds": _duration_of(f"memory_used_bytes{LONG_SUFFIX}"),
    "memory_hour_bytes": lambda window: window.quantity(f"memory_used_bytes{HOUR_SUFFIX}"),
    "memory_hour_seconds": _duration_of(f"memory_used_bytes{HOUR_SUFFIX}"),
    "power_of_limit_fraction": _combined_quantity(
        lambda drawn, most: drawn / most if most else None, "power_watts", "power_limit_watts"
    ),
    "clock_of_most_fraction": _clock_fraction,
    "pcie_bytes_per_s": _combined_quantity(add, *_PCIE),
    "pcie_of_link_fraction": _combined_quantity(_link_fraction, *_PCIE, "link_generation", "link_width"),
    "link_generation": _link_figure("pcie_generation"),
    "link_width": _link_figure("pcie_width"),
    "pcie_of_unknown_link_bytes_per_s": _unknown_link_traffic,
    "media_fraction": _combined_quantity(max, "encoder_fraction", "decoder_fraction"),
    "starved_by_cpu": _combined_quantity(
        lambda use, cpu: float(use < ACTIVE_UTILIZATION and cpu > HIGH_CPU), "use_fraction", "job_cpu_fraction"
    ),
    "job_cpu_fraction": _job_cpu_fraction,
    "memory_without_graphics_bytes": _memory_without_graphics_bytes,
    "starved_by_disk": _combined_quantity(
        lambda use, wait: float(use < ACTIVE_UTILIZATION and wait > HIGH_WAIT), "use_fraction", "host.io_wait_fraction"
    ),
    "waiting_cores": _waiting_cores,
    "slowed_by_heat": _clock_reason_indicator(0x20 | 0x40),
    "slowed_by_supply": _clock_reason_indicator(0x80),
    "slowed_by_card": _clock_reason_indicator(0x8, excluded_bits=0x40 | 0x80),
    # Only while the GPU works: on an idle one the bit is meaningless.
    "held_by_power_limit": _combined_quantity(
        lambda use, bits: float(use >= ACTIVE_UTILIZATION and bool(int(bits) & 0x4)), "use_fraction", "clock_reasons"
    ),
    "held_memory_bytes": _compute_process_memory_bytes,
    "busiest_process_cores": _busiest_process_cores,
    "is_in_use": _in_use_indicator,
    "is_graphics_only": _graphics_only_indicator,
    "peer_distance": _compared_with_busiest_peer(_histogram_distance),
    "peer_lag": _compared_with_busiest_peer(lambda own, peer: peer.mean - own.mean),
    "power_beyond_peers_fraction": _power_beyond_peers,
    "power_behind_peers_fraction": lambda window: _negated(_power_beyond_peers(window)),
    "job_least_use_fraction": _least_busy_of_job,
    "job_most_power_fraction": _most_of_job("power_of_limit_fraction", lambda peer: peer.power),
    "job_most_memory_controller_fraction": _most_of_job(
        "memory_controller_fraction", lambda peer: peer.memory_controller
    ),
}
"""Quantities derived from readings, by name."""

WINDOW_SECONDS: Final = 120.0
"""Length of the diagnosed window: enough for a saw-tooth of slow batches, short enough to notice a change."""
LONG_WINDOW_SECONDS: Final = 600.0
"""Length of the window that is searched for memory growth."""

HOUR_SECONDS: Final = 3_600.0
"""Length of the window that is searched for slow memory growth."""

_HOST: Final = "host"
# Two values per second are enough; ten per second would only cost time.
_MAX_WINDOW_VALUES: Final = 240
# A slow reading stays valid for this long.
_VALID_SECONDS: Final = 60.0
# Only the current processes are known, so a window that ended longer ago has none.
_CURRENT_SECONDS: Final = 15.0
# torchrun and deepspeed start one process per GPU, whose commands differ only in this option.
_RANK: Final = re.compile(r"--local[-_]rank[= ]\d+")


def read_window(source: DiagnosisSource, device: Device, at: float, seconds: float = WINDOW_SECONDS) -> CardWindow:
    """Return the window of GPU and host readings that ends at `at`, in monotonic seconds."""

    def read(name: str) -> TimeSeries | None:
        if name.startswith(HOST_PREFIX):
            return _time_series(source, _HOST, name.removeprefix(HOST_PREFIX), at - seconds, at)
        if name.endswith(LONG_SUFFIX):
            return _time_series(source, device.uuid, name.removesuffix(LONG_SUFFIX), at - LONG_WINDOW_SECONDS, at)
        if name.endswith(HOUR_SUFFIX):
            return _time_series(source, device.uuid, name.removesuffix(HOUR_SUFFIX), at - HOUR_SECONDS, at)
        return _time_series(source, device.uuid, name, at - seconds, at)

    is_now = source.end is not None and abs(source.end - at) <= _CURRENT_SECONDS
    processes = _visible_processes(source) if is_now else None
    own = None if processes is None else tuple(process for process in processes if process.uuid == device.uuid)
    peers = tuple(
        peer
        for other in _cards_of_same_job(source, device, processes, at)
        if (peer := _read_peer(source, other, at - seconds, at)) is not None
    )
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
    return TimeSeries.of(map(float, readings.times[chosen]), map(float, readings.values[chosen]))


def _visible_processes(source: DiagnosisSource) -> tuple[CardProcess, ...] | None:
    is_hidden = any(fault.kind is FaultKind.WSL for fault in source.inventory.faults)
    return None if is_hidden and not source.latest.processes else source.latest.processes


def _cards_of_same_job(
    source: DiagnosisSource, device: Device, processes: tuple[CardProcess, ...] | None, at: float
) -> Iterator[Device]:
    """Yield the other GPUs on which the same user runs the same command; without commands, those that look the same.

    GPUs look the same if they have one name, hold the same memory, and took it at the same time.
    """
    tasks = {task for process in processes or () if (task := _task_identity(process)) is not None}
    own = {task for process in processes or () if process.uuid == device.uuid and (task := _task_identity(process))}
    shape = None if tasks else _memory_shape(source, device, at)
    for other in source.inventory.devices:
        if other.uuid == device.uuid or other.state != "running":
            continue
        if own and any(process.uuid == other.uuid and _task_identity(process) in own for process in processes or ()):
            yield other
        if shape is not None and other.name == device.name and _is_same_shape(shape, _memory_shape(source, other, at)):
            yield other


class _MemoryShape(NamedTuple):
    """Memory that a GPU holds, in bytes, and when it took most of it; None if that was before the first reading."""

    held: float
    taken_at: float | None


_LEAST_HELD_BYTES: Final = GIB
_SAME_MEMORY: Final = 0.02
_SAME_START_SECONDS: Final = 30.0


def _memory_shape(source: DiagnosisSource, device: Device, at: float) -> _MemoryShape | None:
    used = _time_series(source, device.uuid, "memory_used_bytes", at - HOUR_SECONDS, at)
    if used is None or used.values[-1] < _LEAST_HELD_BYTES:
        return None
    below = [time for time, value in zip(used.times, used.values, strict=True) if value < used.values[-1] / 2]
    return _MemoryShape(used.values[-1], below[-1] if below else None)


def _is_same_shape(first: _MemoryShape, second: _MemoryShape | None) -> bool:
    if second is None or abs(first.held - second.held) > _SAME_MEMORY * first.held:
        return False
    if first.taken_at is None or second.taken_at is None:
        return first.taken_at is second.taken_at
    return abs(first.taken_at - second.taken_at) <= _SAME_START_SECONDS


def _read_peer(source: DiagnosisSource, device: Device, start: float, end: float) -> Peer | None:
    """Return the readings of another GPU that are compared; None if its utilization is not known."""

    def read(name: str) -> TimeSeries | None:
        return _time_series(source, device.uuid, name, start, end)

    use, window = read("utilization_fraction"), CardWindow(device, read)
    if use is None:
        return None
    return Peer(use, window.quantity("power_of_limit_fraction"), window.quantity("memory_controller_fraction"))


def _task_identity(process: CardProcess) -> tuple[str, str] | None:
    """Return user and command line, without the rank, by which processes of one job are matched; None if unknown."""
    if process.kind == "graphics" or process.host is None or not process.host.command:
        return None
    return process.host.user, _RANK.sub("", process.host.command)
