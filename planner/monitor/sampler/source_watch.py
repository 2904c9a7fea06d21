"""Sampling of the cards of one source through their losses, their sleep, and calls that do not return."""

from collections.abc import Collection
from dataclasses import replace
from functools import partial

from planner.monitor.readings.faults import ActiveFaults, Fault, FaultKind
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.reading import Reading
from planner.monitor.readings.sample import CardProcess
from planner.monitor.sampler.driver_reader import ALL_CARDS, DriverReader, HangingCallError
from planner.monitor.settings import BackOff
from planner.monitor.sources.source import CardGoneError, CardSource, SourceFailedError


class SourceWatch:
    """The cards of one source; a card that is gone stays listed as lost, and is read again as soon as it is found.

    A call that lasts longer than `hang_seconds` makes its card silent, while the others are read. Cards are looked for
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
        """Read every card, those that change slowly only if asked for, and if asked for the processes on them."""
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
            # What one source trips over must not hide the cards of the others.
            self._next_find = now + self._retry.next_seconds()
            self.faults.note(Fault(FaultKind.SOURCE_FAILED, wall, detail=f"{type(error).__name__}: {error}"))
        self._note_silence(now, wall)
        return found

    def close(self) -> None:
        """Give back what the source keeps busy, unless a call hangs; the next sweep looks for cards again."""
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
            if device.state == "asleep":
                self.faults.note(Fault(FaultKind.ASLEEP, wall, uuid))
            else:
                self.faults.clear(FaultKind.ASLEEP, uuid=uuid)

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
            if implausible:
                self.faults.note(Fault(FaultKind.IMPLAUSIBLE, wall, uuid, ", ".join(implausible)))
            else:
                self.faults.clear(FaultKind.IMPLAUSIBLE, uuid=uuid)

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
