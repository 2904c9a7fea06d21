"""Replays a recording: from anywhere, at any speed."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.reading import Reading
from planner.monitor.readings.sample import Sample
from planner.monitor.recording.recording import Recording, Timed

FASTEST: Final = 1000.0
"""How many times faster than it happened a replay may be."""
# The slowest readings of all come within so many seconds, also where everything is read every ten.
_SETTLING_SECONDS: Final = 30.0


class Player:
    """Gives out a recording's updates as time goes by; positions are seconds from its first sample on."""

    def __init__(self, recording: Recording, speed: float = 1.0) -> None:
        self.recording = recording
        self.speed = speed
        self.position = 0.0
        self._updates = recording.timed()
        self._next: Timed | None = None

    @property
    def is_over(self) -> bool:
        """Return whether everything was given out."""
        return self.position >= self.recording.seconds

    def advance(self, seconds: float) -> tuple[Inventory | Sample, ...]:
        """Let so many seconds pass, `speed` times as fast, and return what was seen in them."""
        return self.updates_until(self.position + seconds * self.speed)

    def updates_until(self, position: float) -> tuple[Inventory | Sample, ...]:
        """Go on to `position`, never back, and return what was seen on the way, in order."""
        self.position = max(self.position, min(position, self.recording.seconds))
        return tuple(timed.update for timed in self._until(self.recording.start + self.position))

    def seek(self, position: float) -> tuple[Inventory | Sample, ...]:
        """Jump to `position`, and return what stood there: the cards, and one sample of every reading's last value."""
        self.position = min(max(position, 0.0), self.recording.seconds)
        at = self.recording.start + self.position
        self._updates, self._next = self.recording.timed(at - _SETTLING_SECONDS), None
        inventory, sample = None, None
        for timed in self._until(at):
            if isinstance(timed.update, Inventory):
                inventory = timed.update
            else:
                sample = timed.update if sample is None else _merged(sample, timed.update)
        return tuple(update for update in (inventory, sample) if update is not None)

    def _until(self, at: float) -> Iterator[Timed]:
        while True:
            timed = self._next or next(self._updates, None)
            self._next = timed
            if timed is None or timed.monotonic_seconds > at:
                return
            self._next = None
            yield timed


def _merged(before: Sample, sample: Sample) -> Sample:
    """Return `sample` with what was last read of all that it does not hold; errors and cost are its own."""
    devices: dict[str, dict[str, Reading]] = {uuid: dict(readings) for uuid, readings in before.devices.items()}
    for uuid, readings in sample.devices.items():
        devices.setdefault(uuid, {}).update(readings)
    processes = before.processes if sample.processes is None else sample.processes
    return replace(sample, devices=devices, host={**before.host, **sample.host}, processes=processes)
