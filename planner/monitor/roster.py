"""The cards over the life of several samplers: known by UUID, and not forgotten because one sampler ended."""

from collections.abc import Mapping
from dataclasses import replace

from planner.monitor.device import Device
from planner.monitor.faults import Fault, FaultKind
from planner.monitor.inventory import Inventory


def is_first_word(inventory: Inventory) -> bool:
    """Return whether a sampler only says that it lives, before it looked for cards."""
    return not (inventory.driver_version or inventory.devices or inventory.faults)


def merge(before: Inventory, now: Inventory, wall: float) -> Inventory:
    """Return `now` with the cards of `before` that are missing in it.

    Where a driver answers and lists other cards, those that are missing are lost; where none answers, they stay as
    they were. A card that is only known by its place takes no UUID's stead.
    """
    known: Mapping[str, Device] = {device.uuid: device for device in now.devices}
    gone = [
        device
        for device in before.devices
        if device.uuid not in known and device.mig_parent is None and device.uuid.startswith("GPU-")
    ]
    if not gone:
        return now
    is_listed = any(device.state == "running" for device in now.devices)
    kept = [replace(device, state="lost") if is_listed else device for device in gone]
    since = {(fault.kind, fault.uuid): fault.since_seconds for fault in before.faults}
    faults = [
        Fault(
            FaultKind.LOST,
            since.get((FaultKind.LOST, device.uuid), wall),
            device.uuid,
            "the driver does not list it any more",
        )
        for device in (kept if is_listed else ())
    ]
    versions = before if not now.driver_version else now
    return Inventory(
        versions.driver_version,
        versions.nvml_version,
        versions.cuda_version,
        (*now.devices, *kept),
        (*now.faults, *faults),
    )
