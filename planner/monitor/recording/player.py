"""Replay of a recording from any position, at any speed."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.reading import Reading
from planner.monitor.readings.sample import Sample
from planner.monitor.recording.recording import MonitorRecording, TimedUpdate

MAX_SPEED: Final = 1000.0
"""Highest replay speed, as a multiple of real time."""
# Every quantity is read at least once in this time, even at the longest sampling interval of ten seconds.
_SETTLING_SECONDS: Final = 30.0


class Player:
    """Replays the updates of a recording; positions are in seconds from the first sample."""

    def __init__(self, recording: MonitorRecording, speed: float = 1.0) -> None:
        self.recording = recording
        self.speed = speed
        self.position = 0.0
        self._updates = recording.timed()
        self._next_update: TimedUpdate | None = None

    @property
    def is_over(self) -> bool:
        """Return whether the end of the recording was reached."""
        return self.position >= self.recording.seconds

    def advance(self, seconds: float) -> tuple[Inventory | Sample, ...]:
        """Advance by `seconds` times `speed`, and return the updates in between."""
        return self.updates_until(self.position + seconds * self.speed)

    def updates_until(self, position: float) -> tuple[Inventory | Sample, ...]:
        """Advance to `position`, never backwards, and return the updates in between, in order."""
        self.position = max(self.position, min(position, self.recording.seconds))
        return tuple(timed.update for timed in self._updates_until(self.recording.start + self.position))

    def seek(self, position: float) -> tuple[Inventory | Sample, ...]:
        """Jump to `position`, and return its state: the inventory, and a sample with the latest readings."""
        self.position = min(max(position, 0.0), self.recording.seconds)
        at = self.recording.start + self.position
        self._updates, self._next_update = self.recording.timed(at - _SETTLING_SECONDS), None
        inventory, sample = None, None
        for timed in self._updates_until(at):
            if isinstance(timed.update, Inventory):
                inventory = timed.update
            else:
                sample = timed.update if sample is None else _merge_samples(sample, timed.update)
        if inventory is not None and sample is not None:
            running = {device.uuid for device in inventory.devices if device.state == "running"}
            # A GPU that was lost in the meantime has no readings any more.
            devices = {uuid: readings for uuid, readings in sample.devices.items() if uuid in running}
            sample = replace(sample, devices=devices)
        return tuple(update for update in (inventory, sample) if update is not None)

    def _updates_until(self, at: float) -> Iterator[TimedUpdate]:
        while True:
            timed = self._next_update or next(self._updates, None)
            self._next_update = timed
            if timed is None or timed.monotonic_seconds > at:
                return
            self._next_update = None
            yield timed


def _merge_samples(before: Sample, sample: Sample) -> Sample:
    """Return `sample` completed with the latest readings of the sample `before`; Xids and cost are not merged."""
    devices: dict[str, dict[str, Reading]] = {uuid: dict(readings) for uuid, readings in before.devices.items()}
    for uuid, readings in sample.devices.items():
        devices.setdefault(uuid, {}).update(readings)
    processes = before.processes if sample.processes is None else sample.processes
    return replace(sample, devices=devices, host={**before.host, **sample.host}, processes=processes)
