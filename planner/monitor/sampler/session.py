"""One NVML session, from initialization to shutdown: its cards and their processes."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from time import monotonic
from typing import Any, Final, NamedTuple, get_args

from planner.monitor.host.processes import HostProcesses
from planner.monitor.nvml import NO_PERMISSION, RESET_REQUIRED, Handle, ListedProcess, Nvml, NvmlFailure, same_handle
from planner.monitor.readings.faults import Fault, FaultKind
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.metrics import BY_NAME, checked_reading
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import CardProcess, ProcessKind, Xid
from planner.monitor.sampler.card import Card
from planner.monitor.sampler.card_queries import CardLostError
from planner.monitor.sampler.discovery import UnreachableCard, find_devices, instance_uuids


class Versions(NamedTuple):
    """Versions of the driver's parts; empty if not reported."""

    driver: str = ""
    nvml: str = ""
    cuda: str = ""


def read_versions(nvml: Nvml) -> Versions:
    """Return the versions that the driver reports."""
    driver = _text(nvml, "nvmlSystemGetDriverVersion")
    library = _text(nvml, "nvmlSystemGetNVMLVersion")
    try:
        number = int(nvml.call("nvmlSystemGetCudaDriverVersion_v2", ""))
    except NvmlFailure:
        return Versions(driver, library)
    # 13000 is CUDA 13.0 (nvml.h, NVML_CUDA_DRIVER_VERSION_MAJOR and _MINOR).
    return Versions(driver, library, f"{number // 1000}.{number % 1000 // 10}")


def _text(nvml: Nvml, call: str) -> str:
    try:
        return nvml.text(call, "")
    except NvmlFailure:
        return ""


_KINDS: Final[tuple[ProcessKind, ...]] = get_args(ProcessKind)
_PER_CENT: Final = 100
# The largest number of a process on 64-bit Linux (PID_MAX_LIMIT, include/linux/threads.h); Windows stays far below.
_LARGEST_PID: Final = 2**22

_Use = Mapping[int, tuple[Reading, Reading]]


class CardProcesses:
    """Lists the processes on cards; `sees_same_pids` is False if the driver's PIDs are of another system."""

    def __init__(self, nvml: Nvml, host: HostProcesses, *, sees_same_pids: bool) -> None:
        self._nvml, self._host, self._sees_same_pids = nvml, host, sees_same_pids
        self._last_use: dict[str, int] = {}

    def read(self, card: Card) -> list[CardProcess]:
        """Return the processes on one card, each once.

        Raises:
            CardLostError: If the card is lost.
            SessionOverError: If the session is invalid.
        """
        listed = {one.pid: (one, kind) for kind in reversed(_KINDS) for one in self._listed(card, kind)}
        if not listed:
            return []
        use, total = self._use(card), card.device.fact("memory_total_bytes")
        return [self._process(card.device.uuid, one, kind, use, total) for one, kind in listed.values()]

    def _listed(self, card: Card, kind: ProcessKind) -> list[ListedProcess]:
        try:
            return self._nvml.processes(card.device.uuid, card.handle, kind)
        except NvmlFailure as failure:
            card.check_failure(failure)
            return []

    def _use(self, card: Card) -> _Use:
        """Return each process's latest usage of SMs and memory traffic since the previous reading."""
        uuid = card.device.uuid
        since = self._last_use.get(uuid, 0)
        samples: list[tuple[int, int, int, int]] = []
        with suppress(NvmlFailure):
            # Some drivers also return stale samples.
            samples = [one for one in self._nvml.process_use(uuid, card.handle, since) if one[1] > since]
        self._last_use[uuid] = max([since, *(at for _, at, _, _ in samples)])
        names = ("utilization_fraction", "memory_controller_fraction")
        return {
            pid: (
                checked_reading(BY_NAME[names[0]], sm / _PER_CENT),
                checked_reading(BY_NAME[names[1]], memory / _PER_CENT),
            )
            for pid, _, sm, memory in sorted(samples, key=lambda one: one[1])
        }

    def _process(self, uuid: str, one: ListedProcess, kind: ProcessKind, use: _Use, total: float | None) -> CardProcess:
        host = self._host.look_up(one.pid) if self._sees_same_pids else None
        hidden = missing(Cause.HIDDEN)
        memory = (
            hidden
            if one.memory_bytes is None
            else checked_reading(BY_NAME["memory_used_bytes"], one.memory_bytes, total)
        )
        idle = missing(Cause.NOT_YET)
        sm, controller = use.get(one.pid, (idle, idle))
        is_reliable = 0 < one.pid <= _LARGEST_PID and not memory.is_implausible
        return CardProcess(one.pid, uuid, kind, memory, sm, controller, host, is_reliable)


_XID: Final = 0x8
# Further events are reported with the next sample.
_MOST_EVENTS: Final = 100
_UNREACHABLE: Final = {NO_PERMISSION: FaultKind.NO_PERMISSION, RESET_REQUIRED: FaultKind.RESET_REQUIRED}


class NvmlSession:
    """An open NVML session.

    Reading methods raise `SessionOverError` when NVML must be initialized again. A lost card is never queried again;
    the others are.
    """

    def __init__(self, nvml: Nvml, processes: CardProcesses) -> None:
        self._nvml, self._processes = nvml, processes
        self._cards: dict[str, Card] = {}
        # Also of cards that were lost: what they reported may arrive after them.
        self._handles: list[tuple[Handle, str]] = []
        self._events: Any = None
        self._count = 0
        self._pending: dict[str, None] = {}
        self.versions = Versions()
        self.lost: dict[str, Device] = {}
        self.faults: list[Fault] = []

    @property
    def devices(self) -> tuple[Device, ...]:
        """Return the responding cards, then the lost ones."""
        return (*(card.device for card in self._cards.values()), *self.lost.values())

    def open(self, wall: float) -> None:
        """Initialize NVML and find its cards; `wall` is in seconds since 1970.

        Raises:
            NvmlFailure: If NVML cannot be initialized.
        """
        self._nvml.call("nvmlInit", "")
        try:
            self.versions = read_versions(self._nvml)
            for found in find_devices(self._nvml):
                if isinstance(found, UnreachableCard):
                    self._note_unreachable(found, wall)
                else:
                    self._cards[found.device.uuid] = Card(self._nvml, found)
                    self._handles.append((found.handle, found.device.uuid))
            self._count = self._nvml.call("nvmlDeviceGetCount", "")
            self._listen()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the driver."""
        for card in self._cards.values():
            card.close()
        if self._events is not None:
            with suppress(NvmlFailure):
                self._nvml.call("nvmlEventSetFree", "", self._events)
        self._cards, self._events = {}, None
        with suppress(NvmlFailure):
            self._nvml.call("nvmlShutdown", "")

    def read(self, now: float, wall: float, *, slow: bool, budget_seconds: float) -> dict[str, dict[str, Reading]]:
        """Return the readings of every responding card.

        `slow` also reads slow quantities: of at least one card, of the others as time allows, of the rest at the next
        call.
        """
        if slow:
            # Cards that are still pending come first.
            self._pending |= dict.fromkeys(self._cards)
        deadline = monotonic() + budget_seconds
        readings = {}
        for uuid, card in list(self._cards.items()):
            try:
                readings[uuid] = card.read_fast(now)
            except CardLostError as error:
                self._lose(card, error, wall)
        for uuid in list(self._pending):
            del self._pending[uuid]
            if uuid not in self._cards:
                continue
            try:
                readings[uuid] |= self._cards[uuid].read_slow(monotonic())
            except CardLostError as error:
                self._lose(self._cards[uuid], error, wall)
            if monotonic() >= deadline:
                break
        return {uuid: read for uuid, read in readings.items() if uuid in self._cards}

    def read_processes(self, wall: float) -> tuple[CardProcess, ...]:
        """Return the processes on every responding card."""
        found: list[CardProcess] = []
        for card in list(self._cards.values()):
            try:
                found += self._processes.read(card)
            except CardLostError as error:
                self._lose(card, error, wall)
        return tuple(found)

    def read_xids(self) -> tuple[Xid, ...]:
        """Return the Xid errors that the driver reported since the previous call."""
        xids = []
        for _ in range(_MOST_EVENTS if self._events is not None else 0):
            event = self._nvml.next_event(self._events)
            if event is None:
                break
            handle, kind, data = event
            if kind == _XID:
                uuid = next((uuid for known, uuid in self._handles if same_handle(known, handle)), "")
                xids.append(Xid(uuid, data))
        return tuple(xids)

    def has_changed(self) -> bool:
        """Return whether cards or instances were added or removed since the session was opened."""
        try:
            if self._nvml.call("nvmlDeviceGetCount", "") != self._count:
                return True
        except NvmlFailure:
            return True
        return any(self._has_other_instances(card) for card in self._cards.values() if card.supports_mig)

    def forget_place(self, index: int) -> None:
        """Forget a card that could not be opened, since it is known by its UUID."""
        uuid = f"index-{index}"
        self.lost.pop(uuid, None)
        self.faults = [fault for fault in self.faults if fault.uuid != uuid]

    def _has_other_instances(self, card: Card) -> bool:
        uuid = card.device.uuid
        known = {other.device.uuid for other in self._cards.values() if other.device.mig_parent == uuid}
        try:
            return instance_uuids(self._nvml, uuid, card.handle) != known
        except NvmlFailure:
            # What is wrong with the card shows when it is read.
            return False

    def _listen(self) -> None:
        try:
            self._events = self._nvml.call("nvmlEventSetCreate", "")
        except NvmlFailure:
            # Windows has no events.
            return
        for card in self._cards.values():
            if card.device.mig_parent is None:
                with suppress(NvmlFailure):
                    self._nvml.call("nvmlDeviceRegisterEvents", card.device.uuid, card.handle, _XID, self._events)

    def _lose(self, card: Card, error: CardLostError, wall: float) -> None:
        kind = FaultKind.RESET_REQUIRED if error.wants_reset else FaultKind.LOST
        for uuid, other in list(self._cards.items()):
            if uuid == card.device.uuid or other.device.mig_parent == card.device.uuid:
                self.lost[uuid] = replace(other.device, state="lost")
                self.faults.append(Fault(kind, wall, uuid, f"seen by {error.failure.call}"))
                del self._cards[uuid]

    def _note_unreachable(self, found: UnreachableCard, wall: float) -> None:
        """Keep a card that is counted but cannot be opened, by its index, as its UUID is unknown."""
        failure = found.failure
        kind = _UNREACHABLE.get(failure.code, FaultKind.LOST)
        uuid = f"index-{found.number}"
        self.lost[uuid] = Device(uuid, f"card {found.number}", found.number, state="lost")
        self.faults.append(Fault(kind, wall, uuid, str(failure)))
