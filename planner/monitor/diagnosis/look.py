"""What of a history bears on one card at one time."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final

from planner.monitor.device import Device
from planner.monitor.diagnosis.stretch import Stretch
from planner.monitor.diagnosis.window import HOST_PREFIX, LONG_SUFFIX, Window
from planner.monitor.faults import FaultKind
from planner.monitor.metrics import BY_NAME
from planner.monitor.past import Past
from planner.monitor.process import CardProcess

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
