"""Readings of one card and its host over the last minutes, with the quantities that rules derive from them."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from operator import add
from typing import Final

from planner.monitor.diagnosis.time_series import ACTIVE, STATISTICS, TimeSeries
from planner.monitor.readings.faults import FaultKind
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.metrics import BY_NAME
from planner.monitor.readings.protocols import DiagnosisSource
from planner.monitor.readings.sample import CardProcess

# PCI Express Base Specification: transfers a second of one lane, and the share of bits that are data (8b/10b,
# 128b/130b; from generation 6 on 236 of 256 bytes of a flit carry packets).
_LANES: Final = {
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
    lane = _LANES.get(int(generation))
    return None if lane is None else lane[0] * lane[1] * lanes / 8


HOST_PREFIX: Final = "host."
"""Prefix of the host's quantities, some of which share their names with those of cards."""
LONG_SUFFIX: Final = ".long"
"""Suffix of quantities that are taken over ten minutes instead of two."""

HIGH_CPU: Final = 0.9
HIGH_WAIT: Final = 0.5
"""**Source** AWS SageMaker Debugger, CPUBottleneck and IOBottleneck: above 90 % and above 50 %, GPU below 10 %."""

ReadSeries = Callable[[str], TimeSeries | None]
"""Function from a quantity's name to its readings, None if there are none."""


class CardWindow:
    """Readings of one card and its host over a time window.

    `read` takes the names of `planner.monitor.readings.metrics`, with the prefix `host.` for the host's. `processes`
    are those on the card, None if unknown. `peers` are the utilizations of other cards that run the same task.
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
        self._read, self._known = read, dict[str, TimeSeries | None]()

    def quantity(self, name: str) -> TimeSeries | None:
        """Return a quantity over the window, read or derived; None if it is not known."""
        if name not in self._known:
            derive = DERIVED.get(name)
            self._known[name] = self._read(name) if derive is None else derive(self)
        return self._known[name]

    def statistic(self, name: str, statistic: str) -> float | None:
        """Return one statistic of a quantity, None if the quantity is not known."""
        series = self.quantity(name)
        return None if series is None else STATISTICS[statistic](series)

    def since(self, start: float) -> "CardWindow":
        """Return the part of the window from `start` on; quantities over ten minutes stay whole.

        A quantity that was not read since keeps its last value.
        """
        return self._part(lambda series: series.since(start) or series.last)

    def until(self, end: float) -> "CardWindow":
        """Return the part of the window before `end`; quantities over ten minutes stay whole.

        A quantity that was first read later keeps its first value.
        """
        return self._part(lambda series: series.until(end) or series.first)

    def _part(self, cut: Callable[[TimeSeries], TimeSeries]) -> "CardWindow":
        def read(name: str) -> TimeSeries | None:
            series = self.quantity(name)
            return series if series is None or name.endswith(LONG_SUFFIX) else cut(series)

        return CardWindow(self.device, read, self.processes, self.cores, tuple(map(cut, self.peers)))


def _utilization(window: CardWindow) -> TimeSeries | None:
    return window.quantity("utilization_fraction") or window.quantity("graphics_active_fraction")


def _memory_used_fraction(window: CardWindow) -> TimeSeries | None:
    return _of_total(window, "memory_free_bytes", "memory_used_bytes")


def _memory_long(window: CardWindow) -> TimeSeries | None:
    return _of_total(window, "", f"memory_used_bytes{LONG_SUFFIX}")


def _memory_long_seconds(window: CardWindow) -> TimeSeries | None:
    used = window.quantity(f"memory_used_bytes{LONG_SUFFIX}")
    return None if used is None else TimeSeries.of(used.seconds)


def _of_total(window: CardWindow, free_name: str, used_name: str) -> TimeSeries | None:
    total = window.device.fact("memory_total_bytes")
    free, used = window.quantity(free_name), window.quantity(used_name)
    if not total:
        return None
    if free is not None:
        return free.combine(lambda value: 1 - value / total)
    return None if used is None else used.combine(lambda value: value / total)


def _memory_left(window: CardWindow) -> TimeSeries | None:
    total, full = window.device.fact("memory_total_bytes"), window.quantity("memory_full_fraction")
    return None if not total or full is None else full.combine(lambda share: (1 - share) * total)


def _clock_share(window: CardWindow) -> TimeSeries | None:
    clock, most = window.quantity("sm_clock_mhz"), window.device.fact("sm_clock_most_mhz")
    return clock.combine(lambda value: value / most) if clock is not None and most else None


def _link_share(sent: float, received: float, generation: float, width: float) -> float | None:
    carries = link_bytes_per_s(generation, width)
    return max(sent, received) / carries if carries else None


def _waiting_cores(window: CardWindow) -> TimeSeries | None:
    waiting, cores = window.quantity("host.io_wait_fraction"), window.cores
    return waiting.combine(lambda share: share * cores) if waiting is not None and cores else None


def _each(compute: Callable[..., float | None], *names: str) -> Callable[[CardWindow], TimeSeries | None]:
    """Return a function that applies `compute` to simultaneous values of the quantities; None if one is missing."""

    def derived(window: CardWindow) -> TimeSeries | None:
        found = (window.quantity(name) for name in names)
        known = [series for series in found if series is not None]
        return known[0].combine(compute, *known[1:]) if len(known) == len(names) else None

    return derived


def _bit(bits: int, *, but: int = 0) -> Callable[[CardWindow], TimeSeries | None]:
    return _each(lambda value: float(bool(int(value) & bits and not int(value) & but)), "clock_reasons")


def _computing(window: CardWindow) -> tuple[CardProcess, ...]:
    return tuple(one for one in window.processes or () if one.kind != "graphics" and one.is_reliable)


def _held_memory(window: CardWindow) -> TimeSeries | None:
    """Return the memory held by compute processes; a desktop's graphics processes do not count."""
    held = [one.memory_bytes.value for one in _computing(window)]
    known = [value for value in held if value is not None]
    if window.processes is None or len(known) < len(held):
        return None
    return TimeSeries.of(sum(known))


def _busiest_process(window: CardWindow) -> TimeSeries | None:
    shares = [one.host.cpu_fraction for one in _computing(window) if one.host is not None]
    known = [share for share in shares if share is not None]
    return TimeSeries.of(max(known)) if known else None


def _is_in_use(window: CardWindow) -> TimeSeries | None:
    use, held = window.quantity("use_fraction"), window.quantity("held_memory_bytes")
    works = use is not None and max(use.values) >= ACTIVE
    return TimeSeries.of(float(works or (held is not None and held.values[0] > 0)))


_BINS: Final = 10


def _compared_with_busiest_peer(
    compare: Callable[[TimeSeries, TimeSeries], float],
) -> Callable[[CardWindow], TimeSeries | None]:
    def compared(window: CardWindow) -> TimeSeries | None:
        use = window.quantity("use_fraction")
        if use is None or not window.peers:
            return None
        return TimeSeries.of(compare(use, max(window.peers, key=lambda peer: peer.mean)))

    return compared


def _distance(one: TimeSeries, other: TimeSeries) -> float:
    """Return the distance of two histograms: half the sum of their absolute differences, 0 to 1."""
    return sum(abs(first - second) for first, second in zip(_histogram(one), _histogram(other), strict=True)) / 2


def _histogram(series: TimeSeries) -> list[float]:
    counts = [0] * _BINS
    for value in series.values:
        counts[min(_BINS - 1, int(value * _BINS))] += 1
    return [count / len(series.values) for count in counts]


_PCIE: Final = ("pcie_transmit_bytes_per_s", "pcie_receive_bytes_per_s")
DERIVED: Final[Mapping[str, Callable[[CardWindow], TimeSeries | None]]] = {
    "use_fraction": _utilization,
    "memory_full_fraction": _memory_used_fraction,
    "memory_left_bytes": _memory_left,
    "memory_long_fraction": _memory_long,
    "memory_long_seconds": _memory_long_seconds,
    "power_of_limit_fraction": _each(
        lambda drawn, most: drawn / most if most else None, "power_watts", "power_limit_watts"
    ),
    "clock_of_most_fraction": _clock_share,
    "pcie_bytes_per_s": _each(add, *_PCIE),
    "pcie_of_link_fraction": _each(_link_share, *_PCIE, "pcie_generation", "pcie_width"),
    "media_fraction": _each(max, "encoder_fraction", "decoder_fraction"),
    "starved_by_cpu": _each(
        lambda use, cpu: float(use < ACTIVE and cpu > HIGH_CPU), "use_fraction", "host.cpu_fraction"
    ),
    "starved_by_disk": _each(
        lambda use, wait: float(use < ACTIVE and wait > HIGH_WAIT), "use_fraction", "host.io_wait_fraction"
    ),
    "waiting_cores": _waiting_cores,
    "slowed_by_heat": _bit(0x20 | 0x40),
    "slowed_by_supply": _bit(0x80),
    "slowed_by_card": _bit(0x8, but=0x40 | 0x80),
    # Only while the card works: on an idle one the bit is meaningless.
    "held_by_power_limit": _each(
        lambda use, bits: float(use >= ACTIVE and bool(int(bits) & 0x4)), "use_fraction", "clock_reasons"
    ),
    "held_memory_bytes": _held_memory,
    "busiest_process_cores": _busiest_process,
    "is_in_use": _is_in_use,
    "peer_distance": _compared_with_busiest_peer(_distance),
    "peer_lag": _compared_with_busiest_peer(lambda one, other: other.mean - one.mean),
}
"""Quantities derived from readings, by name."""

WINDOW_SECONDS: Final = 120.0
"""Length of the diagnosed window: enough for a saw-tooth of slow batches, short enough to notice a change."""
LONG_WINDOW_SECONDS: Final = 600.0
"""Length of the window in which memory growth is looked for."""

_HOST: Final = "host"
# Two per second are enough; ten per second would only cost time.
_MAX_VALUES: Final = 240
# A slow reading stays valid for this long.
_VALID_SECONDS: Final = 60.0
# Only the current processes are known: they are meaningless for an earlier time.
_CURRENT_SECONDS: Final = 15.0
# torchrun and deepspeed start one process per card, whose commands differ only in this option.
_RANK: Final = re.compile(r"--local[-_]rank[= ]\d+")


def read_window(past: DiagnosisSource, device: Device, at: float, seconds: float = WINDOW_SECONDS) -> CardWindow:
    """Return the readings of a card that rules can use at a time."""

    def read(name: str) -> TimeSeries | None:
        if name.startswith(HOST_PREFIX):
            return _time_series(past, _HOST, name.removeprefix(HOST_PREFIX), at - seconds, at)
        if name.endswith(LONG_SUFFIX):
            return _time_series(past, device.uuid, name.removesuffix(LONG_SUFFIX), at - LONG_WINDOW_SECONDS, at)
        return _time_series(past, device.uuid, name, at - seconds, at)

    is_now = past.end is not None and abs(past.end - at) <= _CURRENT_SECONDS
    processes = _processes(past) if is_now else None
    own = None if processes is None else tuple(one for one in processes if one.uuid == device.uuid)
    peers = () if processes is None else tuple(_peers(past, device, processes, at - seconds, at))
    return CardWindow(device, read, own, len(past.latest.cores) or None, peers)


def _time_series(past: DiagnosisSource, owner: str, metric: str, start: float, end: float) -> TimeSeries | None:
    readings = past.series(owner, metric)
    first, stop = bisect_left(readings.times, start), bisect_right(readings.times, end)
    known = BY_NAME.get(metric)
    if known is not None and known.cadence == "slow" and first and readings.times[first - 1] >= start - _VALID_SECONDS:
        first -= 1
    if first >= stop:
        return None
    chosen = slice(first, stop, 1 + (stop - first) // _MAX_VALUES)
    return TimeSeries(tuple(map(float, readings.times[chosen])), tuple(map(float, readings.values[chosen])))


def _processes(past: DiagnosisSource) -> tuple[CardProcess, ...] | None:
    """Return all processes, None if the operating system hides them."""
    is_hidden = any(fault.kind is FaultKind.WSL for fault in past.inventory.faults)
    return None if is_hidden and not past.latest.processes else past.latest.processes


def _peers(
    past: DiagnosisSource, device: Device, processes: tuple[CardProcess, ...], start: float, end: float
) -> Iterator[TimeSeries]:
    """Yield the utilization of the other cards on which the same user runs the same command."""
    tasks = {_task(one) for one in processes if one.uuid == device.uuid} - {None}
    others = {one.uuid for one in processes if one.uuid != device.uuid and _task(one) in tasks}
    for uuid in sorted(others):
        use = _time_series(past, uuid, "utilization_fraction", start, end)
        if use is not None:
            yield use


def _task(process: CardProcess) -> tuple[str, str] | None:
    if process.kind == "graphics" or process.host is None or not process.host.command:
        return None
    return process.host.user, _RANK.sub("", process.host.command)
