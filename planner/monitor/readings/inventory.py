"""Inventory of the driver, its GPUs with their fixed properties, and active faults."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from planner.monitor.readings.faults import Fault, FaultKind
from planner.monitor.readings.reading import Reading

DeviceState = Literal["running", "lost", "asleep"]


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU or MIG instance, identified by its UUID independently of the driver's index.

    `facts` holds the quantities of `metrics.FACTS`. `mig_parent` is the UUID of an instance's GPU. `name` is
    printable; `raw_name` is the driver's name if it is not valid text. `state` explains why a GPU has no readings.
    `driver` is the kernel driver or library that reads the GPU, empty for NVIDIA's; `mig_profile` is such as 3g.40gb.
    """

    uuid: str
    name: str
    index: int
    pci_bus_id: str = ""
    mig_parent: str | None = None
    mig_instance: tuple[int, int] | None = None
    raw_name: str | None = None
    state: DeviceState = "running"
    facts: Mapping[str, Reading] = field(default_factory=dict)
    driver: str = ""
    mig_profile: str = ""

    def fact(self, name: str) -> float | None:
        """Return the value of a fixed property, None if unknown."""
        reading = self.facts.get(name)
        return None if reading is None else reading.value


@dataclass(frozen=True, slots=True)
class Inventory:
    """The driver and its GPUs, valid until the next inventory; versions are empty without a driver.

    `machine` is the name of the machine they are in, empty for this one.
    """

    driver_version: str = ""
    nvml_version: str = ""
    cuda_version: str = ""
    devices: tuple[Device, ...] = ()
    faults: tuple[Fault, ...] = ()
    machine: str = ""

    @property
    def silent_uuids(self) -> frozenset[str]:
        """Return the UUIDs of the GPUs for which alone the driver does not respond."""
        return frozenset(fault.uuid or "" for fault in self.faults if fault.kind is FaultKind.CARD_NOT_ANSWERING)


def is_known_uuid(uuid: str) -> bool:
    """Return whether a UUID is a GPU's own, and not that of a placeholder for a GPU that cannot be opened."""
    return bool(uuid) and not uuid.startswith(("pci-", "index-")) and not uuid.isdigit()


def sort_devices(devices: Iterable[Device]) -> tuple[Device, ...]:
    """Sort GPUs by index, each followed by its MIG instances; a lost GPU keeps its position."""
    known = tuple(devices)
    numbers = {device.uuid: device.index for device in known}

    def sort_key(device: Device) -> tuple[int, int]:
        if device.mig_parent is None:
            return device.index, -1
        return numbers.get(device.mig_parent, device.index), device.index

    return tuple(sorted(known, key=sort_key))
