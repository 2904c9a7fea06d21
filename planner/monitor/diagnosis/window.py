"""Everything that rules ask about one card over the last minutes: what was read, and what follows from it."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from operator import add
from typing import Final

from planner.monitor.diagnosis.stretch import ACTIVE, STATISTICS, Stretch
from planner.monitor.readings.faults import FaultKind
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.metrics import BY_NAME
from planner.monitor.readings.protocols import Past
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
    """Return what a link carries in one direction, in bytes a second; none for a generation that is not known.

    **Formula** transfers a second × share of data bits × lanes ÷ 8.

    **Source** PCI Express Base Specification. Packets' heads take some of it too, a tenth or more.
    """
    lane = _LANES.get(int(generation))
    return None if lane is None else lane[0] * lane[1] * lanes / 8


HOST_PREFIX: Final = "host."
"""What stands before the names of the machine's quantities, some of which are those of cards too."""
LONG_SUFFIX: Final = ".long"
"""What stands after the name of a quantity that is looked at over ten minutes."""

HIGH_CPU: Final = 0.9
HIGH_WAIT: Final = 0.5
"""**Source** AWS SageMaker Debugger, CPUBottleneck and IOBottleneck: above 90 % and above 50 %, GPU below 10 %."""

Read = Callable[[str], Stretch | None]
"""Returns what was read of a quantity, none where nothing was."""


class Window:
    """One card and the machine over a while.

    `read` knows what was read by the names of `planner.monitor.readings.metrics`, the machine's after `host.`.
    `processes` are those of the card, None where they are not known. `peers` are the utilisations of cards that work at
    the same.
    """

    def __init__(
        self,
        device: Device,
        read: Read,
        processes: tuple[CardProcess, ...] | None = None,
        cores: int | None = None,
        peers: tuple[Stretch, ...] = (),
    ) -> None:
        self.device, self.processes, self.cores, self.peers = device, processes, cores, peers
        self._read, self._known = read, dict[str, Stretch | None]()

    def quantity(self, name: str) -> Stretch | None:
        """Return a quantity over the while, read or derived; none where it is not known."""
        if name not in self._known:
            derive = DERIVED.get(name)
            self._known[name] = self._read(name) if derive is None else derive(self)
        return self._known[name]

    def statistic(self, name: str, statistic: str) -> float | None:
        """Return one number on a quantity, none where the quantity is not known."""
        stretch = self.quantity(name)
        return None if stretch is None else STATISTICS[statistic](stretch)

    def since(self, start: float) -> "Window":
        """Return the part that begins at `start`, with the whole of what is asked over a longer while.

        What is not read often keeps its last value.
        """
        return self._part(lambda stretch: stretch.since(start) or stretch.last)

    def until(self, end: float) -> "Window":
        """Return the part before `end`, with the whole of what is asked over a longer while.

        What was read only since then keeps its first value.
        """
        return self._part(lambda stretch: stretch.until(end) or stretch.first)

    def _part(self, cut: Callable[[Stretch], Stretch]) -> "Window":
        def read(name: str) -> Stretch | None:
            stretch = self.quantity(name)
            return stretch if stretch is None or name.endswith(LONG_SUFFIX) else cut(stretch)

        return Window(self.device, read, self.processes, self.cores, tuple(map(cut, self.peers)))


def _use(window: Window) -> Stretch | None:
    return window.quantity("utilization_fraction") or window.quantity("graphics_active_fraction")


def _memory_full(window: Window) -> Stretch | None:
    return _of_total(window, "memory_free_bytes", "memory_used_bytes")


def _memory_long(window: Window) -> Stretch | None:
    return _of_total(window, "", f"memory_used_bytes{LONG_SUFFIX}")


def _memory_long_seconds(window: Window) -> Stretch | None:
    used = window.quantity(f"memory_used_bytes{LONG_SUFFIX}")
    return None if used is None else Stretch.of(used.seconds)


def _of_total(window: Window, free_name: str, used_name: str) -> Stretch | None:
    total = window.device.fact("memory_total_bytes")
    free, used = window.quantity(free_name), window.quantity(used_name)
    if not total:
        return None
    if free is not None:
        return free.with_each(lambda value: 1 - value / total)
    return None if used is None else used.with_each(lambda value: value / total)


def _memory_left(window: Window) -> Stretch | None:
    total, full = window.device.fact("memory_total_bytes"), window.quantity("memory_full_fraction")
    return None if not total or full is None else full.with_each(lambda share: (1 - share) * total)


def _clock_share(window: Window) -> Stretch | None:
    clock, most = window.quantity("sm_clock_mhz"), window.device.fact("sm_clock_most_mhz")
    return clock.with_each(lambda value: value / most) if clock is not None and most else None


def _link_share(sent: float, received: float, generation: float, width: float) -> float | None:
    carries = link_bytes_per_s(generation, width)
    return max(sent, received) / carries if carries else None


def _waiting_cores(window: Window) -> Stretch | None:
    waiting, cores = window.quantity("host.io_wait_fraction"), window.cores
    return waiting.with_each(lambda share: share * cores) if waiting is not None and cores else None


def _each(compute: Callable[..., float | None], *names: str) -> Callable[[Window], Stretch | None]:
    """Return what `compute` makes of each value of the first quantity and of the others; none where one is missing."""

    def derived(window: Window) -> Stretch | None:
        found = (window.quantity(name) for name in names)
        known = [stretch for stretch in found if stretch is not None]
        return known[0].with_each(compute, *known[1:]) if len(known) == len(names) else None

    return derived


def _bit(bits: int, *, but: int = 0) -> Callable[[Window], Stretch | None]:
    return _each(lambda value: float(bool(int(value) & bits and not int(value) & but)), "clock_reasons")


def _computing(window: Window) -> tuple[CardProcess, ...]:
    return tuple(one for one in window.processes or () if one.kind != "graphics" and one.is_reliable)


def _held_memory(window: Window) -> Stretch | None:
    """Tell the memory of the processes that compute; a desktop's do not count."""
    held = [one.memory_bytes.value for one in _computing(window)]
    known = [value for value in held if value is not None]
    if window.processes is None or len(known) < len(held):
        return None
    return Stretch.of(sum(known))


def _busiest_process(window: Window) -> Stretch | None:
    shares = [one.host.cpu_fraction for one in _computing(window) if one.host is not None]
    known = [share for share in shares if share is not None]
    return Stretch.of(max(known)) if known else None


def _is_in_use(window: Window) -> Stretch | None:
    use, held = window.quantity("use_fraction"), window.quantity("held_memory_bytes")
    works = use is not None and max(use.values) >= ACTIVE
    return Stretch.of(float(works or (held is not None and held.values[0] > 0)))


_BINS: Final = 10


def _beside_busiest(compare: Callable[[Stretch, Stretch], float]) -> Callable[[Window], Stretch | None]:
    def compared(window: Window) -> Stretch | None:
        use = window.quantity("use_fraction")
        if use is None or not window.peers:
            return None
        return Stretch.of(compare(use, max(window.peers, key=lambda peer: peer.mean)))

    return compared


def _distance(one: Stretch, other: Stretch) -> float:
    """Return how far histograms are apart: half the sum of their differences, 0 to 1."""
    return sum(abs(first - second) for first, second in zip(_histogram(one), _histogram(other), strict=True)) / 2


def _histogram(stretch: Stretch) -> list[float]:
    counts = [0] * _BINS
    for value in stretch.values:
        counts[min(_BINS - 1, int(value * _BINS))] += 1
    return [count / len(stretch.values) for count in counts]


_PCIE: Final = ("pcie_transmit_bytes_per_s", "pcie_receive_bytes_per_s")
DERIVED: Final[Mapping[str, Callable[[Window], Stretch | None]]] = {
    "use_fraction": _use,
    "memory_full_fraction": _memory_full,
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
    # Only while the card works: on an idle one the bit means nothing.
    "held_by_power_limit": _each(
        lambda use, bits: float(use >= ACTIVE and bool(int(bits) & 0x4)), "use_fraction", "clock_reasons"
    ),
    "held_memory_bytes": _held_memory,
    "busiest_process_cores": _busiest_process,
    "is_in_use": _is_in_use,
    "peer_distance": _beside_busiest(_distance),
    "peer_lag": _beside_busiest(lambda one, other: other.mean - one.mean),
}
"""What follows from what was read, by name."""

SECONDS: Final = 120.0
"""How much is looked at: long enough for a saw-tooth of slow batches, short enough to see a change."""
LONG_SECONDS: Final = 600.0
"""How much is looked at where memory may grow."""

_HOST: Final = "host"
# So many say as much as all of ten a second.
_MOST_VALUES: Final = 240
# What is not read often stands so long.
_STANDS_SECONDS: Final = 60.0
# Processes are those of now: they say nothing of what is further back.
_NOW_SECONDS: Final = 15.0
# torchrun and deepspeed start one process a card, which differ in this only.
_RANK: Final = re.compile(r"--local[-_]rank[= ]\d+")


def look(past: Past, device: Device, at: float, seconds: float = SECONDS) -> Window:
    """Return what rules can ask about a card at a time."""

    def read(name: str) -> Stretch | None:
        if name.startswith(HOST_PREFIX):
            return _stretch(past, _HOST, name.removeprefix(HOST_PREFIX), at - seconds, at)
        if name.endswith(LONG_SUFFIX):
            return _stretch(past, device.uuid, name.removesuffix(LONG_SUFFIX), at - LONG_SECONDS, at)
        return _stretch(past, device.uuid, name, at - seconds, at)

    is_now = past.end is not None and abs(past.end - at) <= _NOW_SECONDS
    processes = _processes(past) if is_now else None
    own = None if processes is None else tuple(one for one in processes if one.uuid == device.uuid)
    peers = () if processes is None else tuple(_peers(past, device, processes, at - seconds, at))
    return Window(device, read, own, len(past.latest.cores) or None, peers)


def _stretch(past: Past, owner: str, metric: str, start: float, end: float) -> Stretch | None:
    readings = past.series(owner, metric)
    first, stop = bisect_left(readings.times, start), bisect_right(readings.times, end)
    known = BY_NAME.get(metric)
    if known is not None and known.cadence == "slow" and first and readings.times[first - 1] >= start - _STANDS_SECONDS:
        first -= 1
    if first >= stop:
        return None
    chosen = slice(first, stop, 1 + (stop - first) // _MOST_VALUES)
    return Stretch(tuple(map(float, readings.times[chosen])), tuple(map(float, readings.values[chosen])))


def _processes(past: Past) -> tuple[CardProcess, ...] | None:
    """Return all processes, none where the system hides them."""
    is_hidden = any(fault.kind is FaultKind.WSL for fault in past.inventory.faults)
    return None if is_hidden and not past.latest.processes else past.latest.processes


def _peers(
    past: Past, device: Device, processes: tuple[CardProcess, ...], start: float, end: float
) -> Iterator[Stretch]:
    """Yield the utilisation of the other cards on which the same command of the same user runs."""
    tasks = {_task(one) for one in processes if one.uuid == device.uuid} - {None}
    others = {one.uuid for one in processes if one.uuid != device.uuid and _task(one) in tasks}
    for uuid in sorted(others):
        use = _stretch(past, uuid, "utilization_fraction", start, end)
        if use is not None:
            yield use


def _task(process: CardProcess) -> tuple[str, str] | None:
    if process.kind == "graphics" or process.host is None or not process.host.command:
        return None
    return process.host.user, _RANK.sub("", process.host.command)
