"""One NVML session, from initialization to shutdown: its GPUs and their processes."""

from collections.abc import Container, Mapping
from contextlib import suppress
from dataclasses import replace
from time import monotonic
from typing import Any, Final, NamedTuple, get_args

from planner.monitor.host.processes import HostProcesses
from planner.monitor.nvml import (
    NO_PERMISSION,
    RESET_REQUIRED,
    Handle,
    ListedProcess,
    Nvml,
    NvmlFailure,
    ProcessUtilization,
    is_same_handle,
)
from planner.monitor.readings.faults import Fault, FaultKind
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.metrics import BY_NAME, checked_reading
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import PROCESS_QUANTITIES, CardProcess, Link, ProcessKind, Xid
from planner.monitor.sampler.card_reader import CardReader
from planner.monitor.sampler.discovery import UnreachableCard, find_devices, instance_uuids
from planner.monitor.sampler.nvml_queries import CardLostError
from planner.units import PER_CENT


class DriverVersions(NamedTuple):
    """Versions of driver, NVML and CUDA; empty if not reported."""

    driver: str = ""
    nvml: str = ""
    cuda: str = ""


def read_versions(nvml: Nvml) -> DriverVersions:
    """Return the versions that the driver reports."""
    driver = _text_or_empty(nvml, "nvmlSystemGetDriverVersion")
    library = _text_or_empty(nvml, "nvmlSystemGetNVMLVersion")
    try:
        number = int(nvml.call("nvmlSystemGetCudaDriverVersion_v2", ""))
    except NvmlFailure:
        return DriverVersions(driver, library)
    # 13000 is CUDA 13.0 (nvml.h, NVML_CUDA_DRIVER_VERSION_MAJOR and _MINOR).
    return DriverVersions(driver, library, f"{number // 1000}.{number % 1000 // 10}")


def _text_or_empty(nvml: Nvml, call: str) -> str:
    try:
        return nvml.call_for_text(call, "")
    except NvmlFailure:
        return ""


_KINDS: Final[tuple[ProcessKind, ...]] = get_args(ProcessKind)
# The largest number of a process on 64-bit Linux (PID_MAX_LIMIT, include/linux/threads.h); Windows stays far below.
_LARGEST_PID: Final = 2**22

_ProcessUtilization = Mapping[int, Mapping[str, Reading]]
_NO_UTILIZATION: Final = dict.fromkeys(PROCESS_QUANTITIES[1:], missing(Cause.NOT_YET))


class CardProcesses:
    """Lists the processes on GPUs; `sees_same_pids` is False if the driver's PIDs belong to another PID namespace."""

    def __init__(self, nvml: Nvml, host: HostProcesses, *, sees_same_pids: bool) -> None:
        self._nvml, self._host, self._sees_same_pids = nvml, host, sees_same_pids
        self._last_utilization_microseconds: dict[str, int] = {}

    def read(self, card: CardReader) -> list[CardProcess]:
        """Return the processes on one GPU, without duplicates.

        Raises:
            CardLostError: If the GPU is lost.
            SessionOverError: If the session is invalid.
        """
        listed = {
            process.pid: (process, kind) for kind in reversed(_KINDS) for process in self._listed_processes(card, kind)
        }
        if not listed:
            return []
        use, total = self._process_utilization(card), card.device.fact("memory_total_bytes")
        return [self._card_process(card.device.uuid, process, kind, use, total) for process, kind in listed.values()]

    def _listed_processes(self, card: CardReader, kind: ProcessKind) -> list[ListedProcess]:
        try:
            return self._nvml.listed_processes(card.device.uuid, card.handle, kind)
        except NvmlFailure as failure:
            card.check_failure(failure)
            return []

    def _process_utilization(self, card: CardReader) -> _ProcessUtilization:
        """Return the latest SM and memory controller utilization since the previous reading, by PID."""
        uuid = card.device.uuid
        since = self._last_utilization_microseconds.get(uuid, 0)
        samples: list[ProcessUtilization] = []
        with suppress(NvmlFailure):
            # Some drivers also return stale samples.
            samples = [
                sample
                for sample in self._nvml.process_utilization(uuid, card.handle, since)
                if sample.microseconds > since
            ]
        self._last_utilization_microseconds[uuid] = max([since, *(sample.microseconds for sample in samples)])
        return {
            sample.pid: {
                name: checked_reading(BY_NAME["utilization_fraction"], percent / PER_CENT)
                for name, percent in zip(PROCESS_QUANTITIES[1:], sample[2:], strict=True)
            }
            for sample in sorted(samples, key=lambda sample: sample.microseconds)
        }

    def _card_process(
        self, uuid: str, listed: ListedProcess, kind: ProcessKind, use: _ProcessUtilization, total: float | None
    ) -> CardProcess:
        host = self._host.look_up(listed.pid) if self._sees_same_pids else None
        hidden = missing(Cause.HIDDEN)
        memory = (
            hidden
            if listed.memory_bytes is None
            else checked_reading(BY_NAME["memory_used_bytes"], listed.memory_bytes, total)
        )
        is_reliable = 0 < listed.pid <= _LARGEST_PID and not memory.is_implausible
        shares = use.get(listed.pid, _NO_UTILIZATION)
        return CardProcess(listed.pid, uuid, kind, memory, **shares, host=host, is_reliable=is_reliable)


_XID: Final = 0x8
# Further events are reported with the next sample.
_MAX_EVENTS: Final = 100
_UNREACHABLE: Final = {NO_PERMISSION: FaultKind.NO_PERMISSION, RESET_REQUIRED: FaultKind.RESET_REQUIRED}


class NvmlSession:
    """An open NVML session.

    Reading methods raise `SessionOverError` when NVML must be initialized again. A lost GPU is never queried again;
    all other GPUs are.
    """

    def __init__(self, nvml: Nvml, processes: CardProcesses) -> None:
        self._nvml, self._processes = nvml, processes
        self._cards: dict[str, CardReader] = {}
        # Including lost GPUs: their events may arrive after the loss.
        self._handles: list[tuple[Handle, str]] = []
        self._events: Any = None
        self._card_count = 0
        self._pending_slow_cards: dict[str, None] = {}
        self.versions = DriverVersions()
        self.lost: dict[str, Device] = {}
        self.faults: list[Fault] = []

    @property
    def responding(self) -> tuple[str, ...]:
        """Return the UUIDs of the GPUs that are not lost."""
        return tuple(self._cards)

    @property
    def devices(self) -> tuple[Device, ...]:
        """Return the responding GPUs, then the lost GPUs."""
        return (*(card.device for card in self._cards.values()), *self.lost.values())

    def open(self, wall: float) -> None:
        """Initialize NVML and discover the GPUs; `wall` is in seconds since 1970.

        Raises:
            NvmlFailure: If NVML cannot be initialized.
        """
        self._nvml.call("nvmlInit", "")
        try:
            self.versions = read_versions(self._nvml)
            for device in find_devices(self._nvml):
                if isinstance(device, UnreachableCard):
                    self._note_unreachable(device, wall)
                else:
                    self._cards[device.device.uuid] = CardReader(self._nvml, device, self.versions.driver)
                    self._handles.append((device.handle, device.device.uuid))
            self._card_count = self._nvml.call("nvmlDeviceGetCount", "")
            self._register_xid_events()
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

    def read(
        self, now: float, wall: float, *, slow: bool, budget_seconds: float, silent: Container[str] = ()
    ) -> dict[str, dict[str, Reading]]:
        """Return the readings of every responding GPU, by UUID and quantity, except those of `silent` GPUs.

        `slow` also reads slow quantities: from at least one GPU, from further GPUs within `budget_seconds`, and
        from the remaining GPUs at the next call.
        """
        if slow:
            # GPUs that are still pending come first.
            self._pending_slow_cards |= dict.fromkeys(self._cards)
        deadline = monotonic() + budget_seconds
        readings = {}
        for uuid, card in list(self._cards.items()):
            if uuid in silent:
                # Nothing that was read before is shown any more.
                self._pending_slow_cards[uuid] = None
                continue
            try:
                readings[uuid] = card.read_fast(now)
            except CardLostError as error:
                self._mark_lost(card, error, wall)
        for uuid in [uuid for uuid in self._pending_slow_cards if uuid not in silent]:
            del self._pending_slow_cards[uuid]
            if uuid not in self._cards:
                continue
            try:
                readings[uuid] |= self._cards[uuid].read_slow(monotonic())
            except CardLostError as error:
                self._mark_lost(self._cards[uuid], error, wall)
            if monotonic() >= deadline:
                break
        return {uuid: read for uuid, read in readings.items() if uuid in self._cards}

    def links(self) -> dict[str, tuple[Link, ...]]:
        """Return the NVLinks of the GPUs whose links were read since the previous call, by UUID."""
        read = {uuid: card.new_links for uuid, card in self._cards.items() if card.new_links}
        for uuid in read:
            self._cards[uuid].new_links = ()
        return read

    def read_processes(self, wall: float, silent: Container[str] = ()) -> tuple[CardProcess, ...]:
        """Return the processes on every responding GPU, except those on `silent` GPUs."""
        processes: list[CardProcess] = []
        for card in [card for uuid, card in self._cards.items() if uuid not in silent]:
            try:
                processes += self._processes.read(card)
            except CardLostError as error:
                self._mark_lost(card, error, wall)
        return tuple(processes)

    def read_xids(self) -> tuple[Xid, ...]:
        """Return the Xid errors that the driver reported since the previous call."""
        xids = []
        for _ in range(_MAX_EVENTS if self._events is not None else 0):
            event = self._nvml.next_event(self._events)
            if event is None:
                break
            handle, kind, data = event
            if kind == _XID:
                uuid = next((uuid for known, uuid in self._handles if is_same_handle(known, handle)), "")
                xids.append(Xid(uuid, data))
        return tuple(xids)

    def has_changed(self) -> bool:
        """Return whether GPUs or instances were added or removed since the session was opened."""
        try:
            if self._nvml.call("nvmlDeviceGetCount", "") != self._card_count:
                return True
        except NvmlFailure:
            return True
        return any(self._has_other_instances(card) for card in self._cards.values() if card.supports_mig)

    def forget_unreachable_card(self, index: int) -> None:
        """Drop the placeholder of a GPU that could not be opened, since its UUID is known from earlier."""
        uuid = f"index-{index}"
        self.lost.pop(uuid, None)
        self.faults = [fault for fault in self.faults if fault.uuid != uuid]

    def _has_other_instances(self, card: CardReader) -> bool:
        uuid = card.device.uuid
        known = {other.device.uuid for other in self._cards.values() if other.device.mig_parent == uuid}
        try:
            return instance_uuids(self._nvml, uuid, card.handle) != known
        except NvmlFailure:
            # The next reading of the GPU reports what is wrong.
            return False

    def _register_xid_events(self) -> None:
        try:
            self._events = self._nvml.call("nvmlEventSetCreate", "")
        except NvmlFailure:
            # Windows has no events.
            return
        for card in self._cards.values():
            if card.device.mig_parent is None:
                with suppress(NvmlFailure):
                    self._nvml.call("nvmlDeviceRegisterEvents", card.device.uuid, card.handle, _XID, self._events)

    def _mark_lost(self, card: CardReader, error: CardLostError, wall: float) -> None:
        kind = FaultKind.RESET_REQUIRED if error.requires_reset else FaultKind.LOST
        for uuid, other in list(self._cards.items()):
            if uuid == card.device.uuid or other.device.mig_parent == card.device.uuid:
                self.lost[uuid] = replace(other.device, state="lost")
                self.faults.append(Fault(kind, wall, uuid, f"detected by {error.failure.call}"))
                del self._cards[uuid]

    def _note_unreachable(self, unreachable: UnreachableCard, wall: float) -> None:
        """Record a GPU that is counted but cannot be opened, by its index, since its UUID is unknown."""
        failure = unreachable.failure
        kind = _UNREACHABLE.get(failure.code, FaultKind.LOST)
        uuid = f"index-{unreachable.number}"
        self.lost[uuid] = Device(uuid, f"GPU {unreachable.number}", unreachable.number, state="lost")
        self.faults.append(Fault(kind, wall, uuid, str(failure)))
