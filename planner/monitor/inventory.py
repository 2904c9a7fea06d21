"""What there is to be read: the driver, its cards, and what stands in the way."""

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
