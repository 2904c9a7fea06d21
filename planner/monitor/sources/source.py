"""The protocol of a source of GPUs: what the sampler asks of each interface by which a system shows its GPUs."""

from collections.abc import Collection, Mapping
from typing import Protocol

from planner.monitor.driver_calls import DriverCalls
from planner.monitor.readings.faults import FaultKind
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.metrics import BY_NAME, checked_reading
from planner.monitor.readings.reading import Reading
from planner.monitor.readings.sample import CardProcess


class CardGoneError(Exception):
    """The GPU is no longer there, and must not be read until it is found again."""


class SourceFailedError(Exception):
    """The source cannot be used; `kind` is the reason. The GPUs that are there all the same are `devices`."""

    def __init__(self, kind: FaultKind, detail: str, devices: tuple[Device, ...] = ()) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.devices = kind, detail, devices


class CardSource(Protocol):
    """GPUs as one interface of the system shows them; each call into a driver goes through `calls`.

    Two sources that find a GPU at the same PCI address speak of the same GPU: the first one names it, and the others
    add what it lacks.
    """

    calls: DriverCalls

    def find(self, now: float) -> tuple[Device, ...]:
        """Return the GPUs that are there at the monotonic time `now`, without waking any that is asleep.

        Raises:
            SourceFailedError: If the GPUs cannot be found or cannot be read.
        """

    def read(self, device: Device, now: float, *, slow: bool) -> dict[str, Reading]:
        """Return the readings of a GPU, those that change slowly only if asked for.

        Raises:
            CardGoneError: If the GPU is no longer there.
        """

    def processes(self, devices: Collection[Device], now: float) -> tuple[CardProcess, ...]:
        """Return the processes on the GPUs, as far as they are visible to this user."""

    def close(self) -> None:
        """Give back what keeps a driver or a program busy; it may be used again."""


def readings_of(values: Mapping[str, float | None]) -> dict[str, Reading]:
    """Return readings of the quantities whose values are known."""
    return {name: checked_reading(BY_NAME[name], value) for name, value in values.items() if value is not None}
