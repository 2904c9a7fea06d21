"""What there is to be read: the driver, its cards, and what stands in the way."""

from collections.abc import Iterable
from dataclasses import dataclass

from planner.monitor.device import Device
from planner.monitor.faults import Fault


@dataclass(frozen=True, slots=True)
class Inventory:
    """The driver and its cards, as they are until the next inventory; versions are empty without a driver."""

    driver_version: str = ""
    nvml_version: str = ""
    cuda_version: str = ""
    devices: tuple[Device, ...] = ()
    faults: tuple[Fault, ...] = ()


def in_order(devices: Iterable[Device]) -> tuple[Device, ...]:
    """Return cards by their numbers, each followed by its instances: one that is lost keeps its place."""
    known = tuple(devices)
    numbers = {device.uuid: device.index for device in known}

    def place(device: Device) -> tuple[int, int]:
        if device.mig_parent is None:
            return device.index, -1
        return numbers.get(device.mig_parent, device.index), device.index

    return tuple(sorted(known, key=place))
