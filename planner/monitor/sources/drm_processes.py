"""Processes on Linux' graphics cards: what the files say that they have opened, and what AMD's compute driver says.

**Source** Linux' Documentation/gpu/drm-usage-stats.rst, and kfd_process.c for `/sys/class/kfd/kfd/proc`.
"""

import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from planner.monitor.driver_calls import DriverCalls
from planner.monitor.host.environment import text_of
from planner.monitor.host.processes import HostProcesses
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.metrics import BY_NAME, checked_reading
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import CardProcess
from planner.units import NANO

# The nodes of GPUs are opened by few programs; others are asked again after so many rounds.
_ROUNDS_UNASKED: Final = 10
_NODES: Final = ("/dev/dri/", "/dev/kfd")
_LINE: Final = re.compile(r"^drm-([\w-]+):[ \t]*(\S+)(?:[ \t]+(\w+))?", re.MULTILINE)
_UNITS: Final = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "ns": 1}
# What draws or computes, what encodes and what decodes, in the words of amdgpu, i915 and xe. Intel's video engines do
# both: their use by a process is not told apart.
_ENGINES: Final = {
    "sm_fraction": ("gfx", "compute", "render", "rcs", "ccs"),
    "encoder_fraction": ("enc", "enc_1"),
    "decoder_fraction": ("dec",),
}
_COMPUTE: Final = ("compute", "ccs")
# Memory on the GPU, in the words of amdgpu, xe and i915.
_REGIONS: Final = ("vram", "vram0", "vram1", "local0", "local1")
_AMOUNTS: Final = ("resident", "memory", "total")
_PROPERTY: Final = re.compile(r"^(\w+) (\d+)$", re.MULTILINE)
_KFD: Final = "sys/class/kfd/kfd"


class _Client(NamedTuple):
    """One use of a GPU by a process: busy time by engine, the clock of each (None: nanoseconds), and memory."""

    busy: dict[str, float]
    clock: dict[str, float]
    memory_bytes: float | None


class _Point(NamedTuple):
    """Busy time of an engine for a client, and the clock of that time."""

    clock: float
    busy: float


class DrmProcesses:
    """Lists the processes that have opened GPUs; `sees_same_pids` is False where `/proc` has numbers of its own."""

    def __init__(self, root: Path, calls: DriverCalls, host: HostProcesses, *, sees_same_pids: bool) -> None:
        self._root, self._calls, self._host = root, calls, host
        self._sees_same_pids = sees_same_pids
        self._before: dict[tuple[str, int, str, str], _Point] = {}
        self._points: dict[tuple[str, int, str, str], _Point] = {}
        self._unasked: dict[int, int] = {}

    def read(self, devices: Collection[Device], now: float) -> tuple[CardProcess, ...]:
        """Return the processes on the GPUs, by GPU and by PID."""
        uuids = {device.pci_bus_id: device.uuid for device in devices}
        if not uuids:
            return ()
        clients = {pid: self._clients(pid, uuids) for pid in self._pids()}
        on_card = {(uuid, pid): users for pid, by_card in clients.items() for uuid, users in by_card.items()}
        compute = self._compute_memory(uuids)
        self._before, self._points = self._points, {}
        listed = tuple(
            self._process(uuid, pid, on_card.get((uuid, pid), {}), compute.get((uuid, pid)), now)
            for uuid, pid in sorted(on_card.keys() | compute.keys())
        )
        self._host.end_round()
        return listed

    def _pids(self) -> Iterator[int]:
        """Yield the processes to ask; those that had opened no GPU are left out for some rounds."""
        try:
            pids = [int(name) for name in os.listdir(self._root / "proc") if name.isdigit()]
        except OSError:
            return
        self._unasked = {pid: rounds - 1 for pid, rounds in self._unasked.items() if rounds > 1}
        for pid in pids:
            if pid not in self._unasked:
                yield pid

    def _clients(self, pid: int, uuids: Mapping[str, str]) -> dict[str, dict[str, _Client]]:
        """Return a process's uses of each GPU, by the number that the driver gives them: files may share one."""
        found: defaultdict[str, dict[str, _Client]] = defaultdict(dict)
        folder = self._root / "proc" / str(pid)
        opened = list(_opened_nodes(folder / "fd"))
        if not opened:
            self._unasked[pid] = _ROUNDS_UNASKED
        for number in opened:
            text = self._calls.timed("reading fdinfo", "", text_of, folder / "fdinfo" / number)
            values = {name: (value, unit or "") for name, value, unit in _LINE.findall(text)}
            address, _ = values.get("pdev", ("", ""))
            if address in uuids and "client-id" in values:
                found[uuids[address]][values["client-id"][0]] = _client(values)
        return found

    def _process(
        self, uuid: str, pid: int, clients: Mapping[str, _Client], compute_bytes: float | None, now: float
    ) -> CardProcess:
        shares = self._engine_shares((uuid, pid), clients, now)
        amounts = [client.memory_bytes for client in clients.values() if client.memory_bytes is not None]
        known = [*([sum(amounts)] if amounts else []), *([] if compute_bytes is None else [compute_bytes])]
        uses_compute_engine = any(client.busy.get(name) for client in clients.values() for name in _COMPUTE)
        return CardProcess(
            pid,
            uuid,
            "graphics" if compute_bytes is None and not uses_compute_engine else "compute",
            checked_reading(BY_NAME["memory_used_bytes"], max(known)) if known else missing(Cause.NOT_SUPPORTED),
            # ROCm's queues bypass the scheduler of which the driver tells the times.
            sm_fraction=_busiest(shares, "sm_fraction" if compute_bytes is None else ""),
            memory_controller_fraction=missing(Cause.NOT_SUPPORTED),
            encoder_fraction=_busiest(shares, "encoder_fraction"),
            decoder_fraction=_busiest(shares, "decoder_fraction"),
            host=self._host.look_up(pid) if self._sees_same_pids else None,
        )

    def _engine_shares(
        self, owner: tuple[str, int], clients: Mapping[str, _Client], now: float
    ) -> dict[str, float | None]:
        """Return the busy share of each engine by a process since the previous round; None in the first."""
        shares: dict[str, float | None] = {}
        for number, client in clients.items():
            for engine, busy in client.busy.items():
                # Either both count cycles, or nanoseconds are compared with seconds.
                point = _Point(client.clock[engine], busy) if engine in client.clock else _Point(now, busy / NANO)
                before = self._before.get((*owner, number, engine))
                self._points[*owner, number, engine] = point
                shares.setdefault(engine, None)
                if before is not None and point.clock > before.clock and point.busy >= before.busy:
                    share = (point.busy - before.busy) / (point.clock - before.clock)
                    shares[engine] = (shares[engine] or 0.0) + share
        return shares

    def _compute_memory(self, uuids: Mapping[str, str]) -> dict[tuple[str, int], float]:
        """Return the memory of ROCm's processes on AMD's GPUs, by GPU and PID."""
        kfd = self._root / _KFD
        cards = {}
        for node in kfd.glob("topology/nodes/*"):
            properties = dict(_PROPERTY.findall(text_of(node / "properties")))
            place, domain = int(properties.get("location_id", 0)), int(properties.get("domain", 0))
            address = f"{domain:04x}:{place >> 8 & 0xFF:02x}:{place >> 3 & 0x1F:02x}.{place & 7}"
            if address in uuids:
                cards[text_of(node / "gpu_id").strip()] = uuids[address]
        found = {}
        for process in kfd.glob("proc/*") if cards else ():
            for card, uuid in cards.items():
                used = text_of(process / f"vram_{card}").strip()
                if used.isdigit() and process.name.isdigit():
                    found[uuid, int(process.name)] = float(used)
        return found


def _opened_nodes(folder: Path) -> Iterator[str]:
    """Yield the numbers of the files of a process that are nodes of GPUs; none if this user may not see them."""
    try:
        numbers = os.listdir(folder)
    except OSError:
        return
    for number in numbers:
        try:
            if os.readlink(folder / number).startswith(_NODES):
                yield number
        except OSError:
            continue


def _client(values: Mapping[str, tuple[str, str]]) -> _Client:
    busy, clock = {}, {}
    for name, (value, _) in values.items():
        kind, _, engine = name.partition("-")
        if not value.isdigit():
            continue
        if (kind == "engine" and not engine.startswith("capacity-")) or kind == "cycles":
            busy[engine] = float(value)
        elif name.startswith("total-cycles-"):
            clock[name.removeprefix("total-cycles-")] = float(value)
    return _Client(busy, clock, _memory_bytes(values))


def _memory_bytes(values: Mapping[str, tuple[str, str]]) -> float | None:
    """Return the memory on the GPU that is in use, in the driver's best words for it."""
    for amount in _AMOUNTS:
        told = [values[f"{amount}-{region}"] for region in _REGIONS if f"{amount}-{region}" in values]
        if told:
            return sum(float(value) * _UNITS.get(unit, 1) for value, unit in told if value.isdigit())
    return None


def _busiest(shares: Mapping[str, float | None], quantity: str) -> Reading:
    engines = [name for name in _ENGINES.get(quantity, ()) if name in shares]
    if not engines:
        return missing(Cause.NOT_SUPPORTED)
    known = [share for name in engines if (share := shares[name]) is not None]
    return Reading(min(max(known), 1.0)) if known else missing(Cause.NOT_YET)
