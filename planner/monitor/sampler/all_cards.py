"""All GPUs of this machine: those of NVIDIA's driver, and those of all other sources, each GPU once."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from planner.monitor.driver_calls import ALL_CARDS, DriverCalls, DriverReader, HangingCallError
from planner.monitor.host.environment import HostEnvironment, PowerState, is_same_pci_address
from planner.monitor.host.processes import HostProcesses
from planner.monitor.readings.faults import ActiveFaults, Fault, FaultKind
from planner.monitor.readings.inventory import Device, Inventory, sort_devices
from planner.monitor.readings.metrics import DEVICE_METRICS
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import CardProcess
from planner.monitor.readings.wire import PendingCall
from planner.monitor.sampler.nvidia_watch import NvidiaWatch, SweepResult
from planner.monitor.settings import BackOff
from planner.monitor.sources.amd_smi import AMD_SMI
from planner.monitor.sources.drm import DrmSource
from planner.monitor.sources.level_zero import LEVEL_ZERO
from planner.monitor.sources.library import LibrarySource
from planner.monitor.sources.programs import apple_source, jetson_source
from planner.monitor.sources.source import CardGoneError, CardSource, SourceFailedError


class SourceWatch:
    """The GPUs of one source; a GPU that is gone stays listed as lost, and is read again as soon as it is found.

    A call that lasts longer than `hang_seconds` makes its GPU silent, while the others are read. GPUs are looked for
    every `find_seconds`; after a failure, at the pauses of `retry`.
    """

    def __init__(self, source: CardSource, hang_seconds: float, find_seconds: float, retry: BackOff) -> None:
        self.source, self.faults = source, ActiveFaults()
        self.devices: dict[str, Device] = {}
        self._reader = DriverReader(source.calls, hang_seconds)
        self._find_seconds, self._retry = find_seconds, retry
        self._next_find = 0.0

    @property
    def is_hanging(self) -> bool:
        """Return whether a call has not returned: the end of this process alone releases it."""
        return bool(self.source.calls.hanging)

    def sweep(
        self, now: float, wall: float, *, slow: bool, processes: bool
    ) -> tuple[dict[str, dict[str, Reading]], tuple[CardProcess, ...]]:
        """Read every GPU, those that change slowly only if asked for, and if asked for the processes on them."""
        self._reader.end_pauses(now)
        found: tuple[dict[str, dict[str, Reading]], tuple[CardProcess, ...]] = {}, ()
        try:
            if ALL_CARDS not in self._reader.silent and now >= self._next_find:
                self._next_find = now + self._find_seconds
                self._reader.read(partial(self._find, now, wall))
            if ALL_CARDS not in self._reader.silent and self._running():
                found = self._reader.read(partial(self._read, now, wall, slow=slow, processes=processes))
        except HangingCallError:
            pass
        except (OSError, ValueError) as error:
            # What one source trips over must not hide the GPUs of the others.
            self._next_find = now + self._retry.next_seconds()
            self.faults.note(Fault(FaultKind.SOURCE_FAILED, wall, detail=f"{type(error).__name__}: {error}"))
        self._note_silence(now, wall)
        return found

    def close(self) -> None:
        """Give back what the source keeps busy, unless a call hangs; the next sweep looks for GPUs again."""
        if not self.is_hanging:
            self.source.close()
        self._reader.close()
        self._next_find = 0.0

    def _running(self) -> Collection[Device]:
        silent = self._reader.silent
        return [device for uuid, device in self.devices.items() if device.state == "running" and uuid not in silent]

    def _find(self, now: float, wall: float) -> None:
        try:
            found = {device.uuid: device for device in self.source.find(now)}
        except SourceFailedError as error:
            self._next_find = now + self._retry.next_seconds()
            self.devices |= {device.uuid: device for device in error.devices}
            self.faults.note(Fault(error.kind, wall, detail=error.detail))
            return
        self._retry.reset()
        self.faults.clear(FaultKind.SOURCE_FAILED, FaultKind.HELPER_MISSING)
        for uuid in self.devices.keys() - found.keys():
            self._note_lost(uuid, "no longer listed by the system", wall)
        self.devices |= found
        for uuid, device in found.items():
            self.faults.clear(FaultKind.LOST, uuid=uuid)
            self.faults.report(Fault(FaultKind.ASLEEP, wall, uuid), is_active=device.state == "asleep")

    def _read(
        self, now: float, wall: float, *, slow: bool, processes: bool
    ) -> tuple[dict[str, dict[str, Reading]], tuple[CardProcess, ...]]:
        readings = {}
        for device in self._running():
            try:
                readings[device.uuid] = self.source.read(device, now, slow=slow)
            except CardGoneError as error:
                self._note_lost(device.uuid, str(error), wall)
                # It may be back under another name.
                self._next_find = now + self._find_seconds
        self._note_implausible_values(readings, wall)
        return readings, self.source.processes(self._running(), now) if processes else ()

    def _note_lost(self, uuid: str, detail: str, wall: float) -> None:
        self.devices[uuid] = replace(self.devices[uuid], state="lost")
        self.faults.note(Fault(FaultKind.LOST, wall, uuid, detail))

    def _note_implausible_values(self, readings: dict[str, dict[str, Reading]], wall: float) -> None:
        for uuid, read in readings.items():
            implausible = sorted(name for name, reading in read.items() if reading.is_implausible)
            fault = Fault(FaultKind.IMPLAUSIBLE, wall, uuid, ", ".join(implausible))
            self.faults.report(fault, is_active=bool(implausible))

    def _note_silence(self, now: float, wall: float) -> None:
        silent = self._reader.silent
        if ALL_CARDS in silent:
            call = silent[ALL_CARDS]
            self.faults.note(
                Fault(FaultKind.SOURCE_FAILED, wall - (now - call.since_seconds), detail=f"{call.call} hangs")
            )
        for uuid in self.devices:
            if uuid in silent:
                since = wall - (now - silent[uuid].since_seconds)
                self.faults.note(Fault(FaultKind.CARD_NOT_ANSWERING, since, uuid, silent[uuid].call))
            else:
                self.faults.clear(FaultKind.CARD_NOT_ANSWERING, uuid=uuid)


# What says no more than that this machine has no NVIDIA GPU, if it has others.
_NO_NVIDIA: Final = frozenset(
    {FaultKind.NO_DRIVER, FaultKind.NO_LIBRARY, FaultKind.NO_BINDING, FaultKind.WRONG_BINDING, FaultKind.NO_CARDS}
)
_NOT_REPORTED: Final = {metric.name: missing(Cause.NOT_SUPPORTED) for metric in DEVICE_METRICS}


class AllCards:
    """Sampling of all GPUs; `nvidia_cards` returns the NVIDIA GPUs that the system lists, by PCI address.

    NVIDIA's driver is asked first, then the sources in their order. Of a GPU that several of them report, the first
    that reports a quantity counts.
    """

    def __init__(
        self,
        nvidia: NvidiaWatch,
        sources: Sequence[SourceWatch],
        nvidia_cards: Callable[[], Mapping[str, PowerState]],
    ) -> None:
        self._nvidia, self._sources, self._nvidia_cards = nvidia, sources, nvidia_cards
        self._is_released = False
        self._indexes: dict[str, int] = {}
        # The UUID under which a GPU is shown, by the UUID that a source gives it.
        self._shown: dict[str, str] = {}
        self._has_nvidia: bool | None = None

    @property
    def must_restart(self) -> bool:
        """Return whether only a new process can go on."""
        return self._nvidia.must_restart

    @property
    def opened_at(self) -> float:
        """Return when NVIDIA's driver was opened last, in monotonic seconds; 0 before."""
        return self._nvidia.opened_at

    @property
    def pending_call(self) -> PendingCall | None:
        """Return the driver call in progress, None if there is none; may be called from any thread."""
        return next((call for calls in self._calls if (call := calls.pending_call) is not None), None)

    @property
    def usage(self) -> tuple[int, float, int]:
        """Return the number of driver calls so far, their duration, and the microseconds told for field values."""
        return (
            sum(calls.calls for calls in self._calls),
            sum(calls.driver_seconds for calls in self._calls),
            sum(calls.field_microseconds for calls in self._calls),
        )

    @property
    def _calls(self) -> tuple[DriverCalls, ...]:
        nvml = self._nvidia.nvml
        return (*(() if nvml is None else (nvml,)), *(watch.source.calls for watch in self._sources))

    def inventory(self) -> Inventory:
        """Return the current inventory: NVIDIA's GPUs with the driver's numbers, and then all others."""
        inventory = self._nvidia.inventory()
        listed, faults = {device.uuid: device for device in inventory.devices}, list(inventory.faults)
        for watch in self._sources:
            added = {device.uuid: device for device in watch.devices.values() if self._add_device(listed, device)}
            faults += (
                fault
                for each in watch.faults.current
                if (fault := self._as_shown_fault(each, added, listed)) is not None
            )
        if len(listed) > len(inventory.devices) and not self._needs_nvidia(faults):
            faults = [fault for fault in faults if fault.kind not in _NO_NVIDIA]
        return replace(inventory, devices=sort_devices(listed.values()), faults=_distinct(faults))

    def _as_shown_fault(self, fault: Fault, added: Mapping[str, Device], listed: Mapping[str, Device]) -> Fault | None:
        """Return a source's fault as one of the shown GPU; None if another source of `added` GPUs knows better."""
        uuid = fault.uuid or ""
        shown = replace(fault, uuid=self._shown.get(uuid, fault.uuid))
        if uuid not in added or fault.kind is FaultKind.IMPLAUSIBLE:
            return shown
        hangs = fault.kind is FaultKind.CARD_NOT_ANSWERING
        is_lost_here_alone = fault.kind is FaultKind.LOST and listed[shown.uuid or ""].state != "lost"
        if not hangs and not is_lost_here_alone:
            return None
        detail = f"{added[uuid].driver}: {fault.detail}{' hangs' if hangs else ''}"
        return replace(shown, kind=FaultKind.SOURCE_FAILED, detail=detail)

    def release(self, wall: float) -> None:
        """Disconnect from all drivers until `resume`."""
        self._is_released = True
        self._nvidia.release(wall)
        for watch in self._sources:
            watch.close()

    def resume(self) -> None:
        """Reconnect to the drivers at the next sweep."""
        self._is_released = False
        self._nvidia.resume()

    def close(self) -> None:
        """Release all drivers."""
        self._nvidia.close()
        for watch in self._sources:
            watch.close()

    def sweep(self, now: float, wall: float, *, slow: bool, processes: bool, budget_seconds: float) -> SweepResult:
        """Read every GPU; see `NvidiaWatch.sweep`."""
        result = self._nvidia.sweep(now, wall, slow=slow, processes=processes, budget_seconds=budget_seconds)
        if self._is_released or not self._sources:
            return result
        devices, listed = dict(result.devices), list(result.processes or ())
        for watch in self._sources:
            readings, found = watch.sweep(now, wall, slow=slow, processes=processes)
            self._note_shown()
            for uuid, read in readings.items():
                shown = self._shown.get(uuid, uuid)
                devices[shown] = _completed(devices.get(shown, {}), read)
            known = {(process.uuid, process.pid) for process in listed}
            listed += [each for each in map(self._as_shown, found) if (each.uuid, each.pid) not in known]
        if slow:
            own = [uuid for uuid in devices if uuid not in result.devices]
            devices |= {uuid: {**_NOT_REPORTED, **devices[uuid]} for uuid in own}
        has_processes = result.processes is not None or (processes and bool(devices))
        return result._replace(devices=devices, processes=tuple(listed) if has_processes else None)

    def _as_shown(self, process: CardProcess) -> CardProcess:
        return replace(process, uuid=self._shown.get(process.uuid, process.uuid))

    def _note_shown(self) -> None:
        """Find out which GPUs several sources report."""
        listed = {device.uuid: device for device in self._nvidia.inventory().devices}
        for watch in self._sources:
            for device in watch.devices.values():
                self._add_device(listed, device)

    def _add_device(self, listed: dict[str, Device], device: Device) -> bool:
        """List a GPU of a source, or complete the one that is listed already; return whether it was."""
        same = next((known for known in listed.values() if _is_same_card(known, device)), None)
        if same is None:
            # A number once given stays, but NVIDIA's GPUs keep those of their driver.
            taken = {known.index for known in listed.values() if known.mig_parent is None}
            index = self._indexes.get(device.uuid)
            if index is None or index in taken:
                index = self._indexes[device.uuid] = max(taken, default=-1) + 1
            self._shown[device.uuid] = device.uuid
            listed[device.uuid] = replace(device, index=index)
            return False
        self._shown[device.uuid] = same.uuid
        drivers = dict.fromkeys(name for known in (same, device) for name in known.driver.split(", ") if name)
        listed[same.uuid] = replace(
            same, facts=_completed(dict(same.facts), device.facts), driver=", ".join(drivers) if same.driver else ""
        )
        return True

    def _needs_nvidia(self, faults: Sequence[Fault]) -> bool:
        """Return whether the system lists an NVIDIA GPU, whose driver is then missed."""
        if self._has_nvidia is None and any(fault.kind in _NO_NVIDIA for fault in faults):
            self._has_nvidia = bool(self._nvidia_cards())
        return bool(self._has_nvidia)


def _is_same_card(known: Device, device: Device) -> bool:
    """Return whether a GPU is one that is known: at the same place, or the one GPU that has no place of its own."""
    if known.mig_parent is not None:
        return False
    if known.pci_bus_id and device.pci_bus_id:
        return is_same_pci_address(known.pci_bus_id, device.pci_bus_id)
    # Jetson's GPU is on no bus: NVML reports it, and tegrastats the same one.
    return bool(known.fact("unified_memory") and device.fact("unified_memory")) and not known.driver


def _completed(known: Mapping[str, Reading], further: Mapping[str, Reading]) -> dict[str, Reading]:
    """Return readings, those without a value replaced by further ones that have one."""
    added = {
        name: reading
        for name, reading in further.items()
        if name not in known or (known[name].value is None and reading.value is not None)
    }
    return {**known, **added}


def _distinct(faults: Sequence[Fault]) -> tuple[Fault, ...]:
    """Return faults without those that another source reports too, oldest first."""
    by_key = {fault.key: fault for fault in sorted(faults, key=lambda fault: fault.since_seconds, reverse=True)}
    return tuple(sorted(by_key.values(), key=lambda fault: fault.since_seconds))


def card_sources(root: Path, environment: HostEnvironment) -> tuple[CardSource, ...]:
    """Return the sources; `root` is the root of the file system.

    What the kernel shows comes first, since it names the GPUs and their processes; vendors' libraries add to it.
    """
    drm = DrmSource(root, HostProcesses(), sees_same_pids=not environment.is_wsl)
    return drm, LibrarySource(root, AMD_SMI), LibrarySource(root, LEVEL_ZERO), jetson_source(root), apple_source()
