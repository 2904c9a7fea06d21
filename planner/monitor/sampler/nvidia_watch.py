"""Robust sampling of the GPUs of NVIDIA's driver: reopens sessions, lets idle GPUs sleep, and reports faults."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from planner.monitor.driver_calls import ALL_CARDS, DriverReader, HangingCallError
from planner.monitor.host.environment import HostEnvironment
from planner.monitor.host.processes import HostProcesses
from planner.monitor.host.sleep import SleepPolicy
from planner.monitor.nvml import NoBindingError, Nvml, NvmlFailure, opening_fault
from planner.monitor.readings.faults import ActiveFaults, Fault, FaultKind
from planner.monitor.readings.inventory import Device, Inventory, sort_devices
from planner.monitor.readings.reading import Reading
from planner.monitor.readings.sample import CardProcess, Link, Xid
from planner.monitor.readings.wire import PendingCall
from planner.monitor.sampler.nvml_queries import SessionOverError
from planner.monitor.sampler.session import CardProcesses, DriverVersions, NvmlSession
from planner.monitor.settings import BackOff

_OPENING_FAULTS: Final = (
    FaultKind.NO_DRIVER,
    FaultKind.NO_LIBRARY,
    FaultKind.MISMATCH,
    FaultKind.NO_PERMISSION,
    FaultKind.DRIVER_ERROR,
    FaultKind.NO_CARDS,
)
# Interval at which the state of sleeping GPUs is checked.
_SLEEP_CHECK_SECONDS: Final = 1.0
# Time without faults after which the GPUs count as stable.
_STABLE_SECONDS: Final = 60.0


class SweepResult(NamedTuple):
    """Result of one sweep: readings of all GPUs, and processes (None if not read)."""

    devices: dict[str, dict[str, Reading]]
    processes: tuple[CardProcess, ...] | None = None
    xids: tuple[Xid, ...] = ()
    links: Mapping[str, tuple[Link, ...]] = {}


class NvidiaWatch:
    """Sampling of the GPUs of NVIDIA's driver through losses, resets, sleep and driver updates.

    `first_try` is the earliest time at which to open the driver, by the monotonic clock. A call that lasts longer than
    `hang_seconds` makes its GPU silent, while the others are read.
    """

    def __init__(
        self,
        environment: HostEnvironment,
        sleep: SleepPolicy,
        first_try: float,
        retry: BackOff,
        look_again: BackOff,
        hang_seconds: float,
    ) -> None:
        self.faults = ActiveFaults()
        self.nvml: Nvml | None = None
        self.must_restart = False
        self._environment, self._sleep = environment, sleep
        self._retry, self._look_again, self._hang_seconds = retry, look_again, hang_seconds
        self._reader: DriverReader | None = None
        self._next_try = first_try
        self._next_search: float | None = None
        self._session: NvmlSession | None = None
        self._devices: dict[str, Device] = {}
        self._implausible_metrics: dict[str, frozenset[str]] = {}
        self._versions = DriverVersions()
        self._host_processes = HostProcesses()
        self._is_released = False
        self._was_open = False
        self.opened_at = 0.0
        self._reset_at: float | None = None
        self._reset_by = ""

    def inventory(self) -> Inventory:
        """Return the current inventory."""
        return Inventory(*self._versions, sort_devices(self._devices.values()), self.faults.current)

    def release(self, wall: float) -> None:
        """Disconnect from the driver until `resume`."""
        self._is_released = True
        self.close()
        self.faults.note(Fault(FaultKind.RELEASED, wall))

    def resume(self) -> None:
        """Reconnect to the driver at the next sweep."""
        self._is_released = False
        self._next_try = 0.0
        self.faults.clear(FaultKind.RELEASED)

    def close(self) -> None:
        """Release the driver; the next sweep opens the driver again."""
        if self._session is None or self._reader is None or self.nvml is None:
            return
        if self.nvml.hanging:
            # A driver that hangs would hang in its shutdown, too: the end of this process releases it.
            self.must_restart = True
        else:
            self._session.close()
        self._reader.close()
        self._session = None

    def sweep(self, now: float, wall: float, *, slow: bool, processes: bool, budget_seconds: float) -> SweepResult:
        """Read every GPU; first open the driver, if an attempt is due and wakes no GPU.

        `slow` also reads slow quantities, from as many GPUs as `budget_seconds` allow.
        """
        if self._is_released:
            return SweepResult({})
        if self._session is None:
            self._open_session(now, wall)
        session, reader = self._session, self._reader
        if session is None or reader is None:
            return SweepResult({})
        reader.end_pauses(now)
        result = SweepResult({})
        try:
            if slow and not reader.silent and reader.read(partial(self._should_reopen, session, now)):
                self.close()
                self._open_session(now, wall)
                if self._session is None:
                    return result
                session = self._session
            if ALL_CARDS not in reader.silent:
                result = self._read_cards(
                    session, reader, now, wall, slow=slow, processes=processes, budget_seconds=budget_seconds
                )
        except SessionOverError as error:
            self._reset_at, self._reset_by = now, str(error)
            self.close()
            return result
        except HangingCallError:
            pass
        self._note_silence(session, reader.silent, now, wall)
        return result

    def _read_cards(
        self,
        session: NvmlSession,
        reader: DriverReader,
        now: float,
        wall: float,
        *,
        slow: bool,
        processes: bool,
        budget_seconds: float,
    ) -> SweepResult:
        silent = frozenset(reader.silent)

        def read() -> SweepResult:
            devices = session.read(now, wall, slow=slow, budget_seconds=budget_seconds, silent=silent)
            card_processes = session.read_processes(wall, silent) if processes else None
            return SweepResult(devices, card_processes, session.read_xids(), session.links())

        result = reader.read(read)
        if processes:
            self._host_processes.end_round()
        self._update_from_session(session, now)
        self._note_implausible_values(result, wall)
        if self._reset_at is not None and now - self._reset_at > _STABLE_SECONDS:
            self._reset_at = None
            self.faults.clear(FaultKind.DRIVER_RESET)
        if processes and self._sleep.should_release(now, is_idle=not silent and _is_idle(result)):
            self.close()
            self._note_asleep_fault()
            self.faults.note(Fault(FaultKind.ASLEEP, wall, detail="released so that it can sleep"))
        return result

    def _note_silence(self, session: NvmlSession, silent: Mapping[str, PendingCall], now: float, wall: float) -> None:
        """Note for which GPUs the driver does not respond, or that it does not respond at all."""
        is_whole_driver = bool(silent) and (ALL_CARDS in silent or silent.keys() >= set(session.responding))
        if is_whole_driver:
            call = min(silent.values(), key=lambda call: call.since_seconds)
            detail = f"{call.call} of {call.subject}" if call.subject else call.call
            self.faults.note(Fault(FaultKind.NOT_ANSWERING, wall - (now - call.since_seconds), detail=detail))
        else:
            self.faults.clear(FaultKind.NOT_ANSWERING)
        for uuid in session.responding:
            if uuid in silent and not is_whole_driver:
                since = wall - (now - silent[uuid].since_seconds)
                self.faults.note(Fault(FaultKind.CARD_NOT_ANSWERING, since, uuid, silent[uuid].call))
            else:
                self.faults.clear(FaultKind.CARD_NOT_ANSWERING, uuid=uuid)

    def _open_session(self, now: float, wall: float) -> None:
        if now < self._next_try or not self._may_open_session(now, wall):
            return
        try:
            self.nvml = self.nvml or Nvml()
            self._reader = self._reader or DriverReader(self.nvml, self._hang_seconds)
            process_reader = CardProcesses(
                self.nvml, self._host_processes, sees_same_pids=self._environment.sees_same_pids
            )
            session = NvmlSession(self.nvml, process_reader)
            session.open(wall)
        except NoBindingError as error:
            self._next_try = float("inf")
            self.faults.note(Fault(error.kind, wall, detail=error.detail))
            return
        except NvmlFailure as failure:
            self._note_opening_failure(failure, now, wall)
            return
        except SessionOverError as error:
            self._next_try = now + self._retry.next_seconds()
            self.faults.note(Fault(FaultKind.DRIVER_ERROR, wall, detail=str(error)))
            return
        self._note_session_opened(session, now, wall)

    def _may_open_session(self, now: float, wall: float) -> bool:
        asleep = self._sleep.asleep()
        for place in asleep if not self._devices else ():
            uuid = f"pci-{place}"
            self._devices[uuid] = Device(uuid, f"NVIDIA GPU at {place}", len(self._devices), place, state="asleep")
        if asleep:
            self._note_asleep_fault()
            self.faults.note(Fault(FaultKind.ASLEEP, wall))
        may_open = self._sleep.may_open(now)
        if not may_open:
            self._next_try = now + _SLEEP_CHECK_SECONDS
        return may_open

    def _note_session_opened(self, session: NvmlSession, now: float, wall: float) -> None:
        """Take over a session that was just opened, and clear the faults that prevented opening it."""
        self._session, self._versions = session, session.versions
        self._retry.reset()
        self.faults.clear(*_OPENING_FAULTS, FaultKind.ASLEEP)
        self._was_open, self.opened_at = True, now
        self._next_search = None
        if self._reset_at is not None:
            self.faults.note(Fault(FaultKind.DRIVER_RESET, wall, detail=self._reset_by))
        listed = {device.uuid: device for device in session.devices}
        # A known GPU that is no longer found is lost, unless only its address was known.
        lost = {
            uuid: replace(device, state="lost")
            for uuid, device in self._devices.items()
            if uuid not in listed and uuid.startswith("GPU-")
        }
        for uuid, device in lost.items():
            session.forget_unreachable_card(device.index)
            session.faults.append(Fault(FaultKind.LOST, wall, uuid, "no longer listed by the driver"))
        session.lost |= lost
        for uuid in listed:
            if uuid not in session.lost:
                self.faults.clear(FaultKind.LOST, FaultKind.RESET_REQUIRED, uuid=uuid)
        self._update_from_session(session, now)
        self._note_environment_faults(session, wall)

    def _note_environment_faults(self, session: NvmlSession, wall: float) -> None:
        if not session.devices:
            self.faults.note(Fault(FaultKind.NO_CARDS, wall))
        elif self._environment.has_own_pids:
            self.faults.note(Fault(FaultKind.FOREIGN_PIDS, wall))
        if self._environment.is_wsl:
            self.faults.note(Fault(FaultKind.WSL, wall))
        for device in session.devices:
            fault = Fault(FaultKind.BAD_NAME, wall, device.uuid, device.raw_name or "")
            self.faults.report(fault, is_active=device.raw_name is not None)

    def _note_opening_failure(self, failure: NvmlFailure, now: float, wall: float) -> None:
        kind = opening_fault(failure.code)
        self._next_try = now + self._retry.next_seconds()
        self.faults.clear(*(other for other in _OPENING_FAULTS if other is not kind))
        self.faults.note(Fault(kind, wall, detail=str(failure)))
        # The old library stays loaded in this process: only a new process loads the new library.
        self.must_restart = kind is FaultKind.MISMATCH and self._was_open

    def _update_from_session(self, session: NvmlSession, now: float) -> None:
        for fault in session.faults:
            self.faults.note(fault)
        session.faults.clear()
        self._devices = {device.uuid: device for device in session.devices}
        self.faults.keep_devices(frozenset(self._devices))
        if session.lost and self._next_search is None:
            self._next_search = now + self._look_again.next_seconds()
        elif not session.lost and now - self.opened_at > _STABLE_SECONDS:
            self._look_again.reset()

    def _should_reopen(self, session: NvmlSession, now: float) -> bool:
        """Return whether to reopen the NVML session, to search for lost GPUs or because the list of GPUs changed."""
        return (self._next_search is not None and now >= self._next_search) or session.has_changed()

    def _note_implausible_values(self, result: SweepResult, wall: float) -> None:
        for uuid, readings in result.devices.items():
            # A slow quantity stays implausible until it is read again.
            implausible = self._implausible_metrics.get(uuid, frozenset()) - readings.keys()
            implausible |= {name for name, reading in readings.items() if reading.is_implausible}
            self._implausible_metrics[uuid] = implausible
            fault = Fault(FaultKind.IMPLAUSIBLE, wall, uuid, ", ".join(sorted(implausible)))
            self.faults.report(fault, is_active=bool(implausible))
        if result.processes is not None:
            unreliable = {process.uuid for process in result.processes if not process.is_reliable}
            for uuid in result.devices:
                self.faults.report(Fault(FaultKind.UNRELIABLE_PROCESSES, wall, uuid), is_active=uuid in unreliable)

    def _note_asleep_fault(self) -> None:
        self._devices = {uuid: replace(device, state="asleep") for uuid, device in self._devices.items()}


def _is_idle(result: SweepResult) -> bool:
    """Return whether no GPU has processes or utilization."""
    busy = (readings.get("utilization_fraction") for readings in result.devices.values())
    return not result.processes and not any(reading is not None and reading.value for reading in busy)
