"""Merging of inventories across sampler processes: cards are identified by UUID, and kept when a sampler ends."""

from collections.abc import Mapping
from dataclasses import replace

from planner.monitor.host.pci import is_same_pci_address
from planner.monitor.readings.faults import Fault, FaultKind
from planner.monitor.readings.inventory import Device, Inventory, sort_devices


def is_startup_inventory(inventory: Inventory) -> bool:
    """Return whether an inventory is the empty inventory that a sampler sends before searching for cards."""
    return not (inventory.driver_version or inventory.devices or inventory.faults)


def merge_inventories(before: Inventory, now: Inventory, wall: float) -> Inventory:
    """Return the inventory `now`, completed with cards that only `before` lists; `wall` is in seconds since 1970.

    If the driver responds and lists other cards, a missing card is lost; otherwise it keeps its state. A card known
    only by its address (asleep, or impossible to open) is identified with the earlier card at that address.
    """
    listed = {device.uuid for device in now.devices}
    unlisted = [device for device in before.devices if device.uuid not in listed and device.uuid.startswith("GPU-")]
    if not unlisted:
        return now
    responds = any(device.state == "running" for device in now.devices)
    known_by_address = {
        placeholder.uuid: device
        for placeholder in now.devices
        for device in unlisted
        if _is_card_of_placeholder(placeholder, device)
    }
    identified = {device.uuid for device in known_by_address.values()}
    missing = [device for device in unlisted if device.uuid not in identified]
    versions = now if now.driver_version else before
    return Inventory(
        versions.driver_version,
        versions.nvml_version,
        versions.cuda_version,
        sort_devices(
            (
                *(_identified_device(device, known_by_address) for device in now.devices),
                *(replace(device, state="lost") if responds else device for device in missing),
            )
        ),
        (
            *(_fault_of_identified_device(fault, known_by_address) for fault in now.faults),
            *(_lost_fault(device, before, wall) for device in missing if responds),
        ),
    )


def _is_card_of_placeholder(placeholder: Device, device: Device) -> bool:
    """Return whether `device` is the card that a placeholder stands for, by PCI address or driver index."""
    if placeholder.uuid.startswith("pci-"):
        return is_same_pci_address(device.pci_bus_id, placeholder.pci_bus_id)
    return placeholder.uuid == f"index-{device.index}"


def _identified_device(device: Device, known_by_address: Mapping[str, Device]) -> Device:
    """Return the known card at the address of a placeholder, with the placeholder's state; else `device`."""
    known = known_by_address.get(device.uuid)
    return device if known is None else replace(known, state=device.state)


def _fault_of_identified_device(fault: Fault, known_by_address: Mapping[str, Device]) -> Fault:
    """Return the fault of a placeholder as a fault of the known card at that address; else `fault`."""
    known = known_by_address.get(fault.uuid or "")
    return fault if known is None else replace(fault, uuid=known.uuid)


def _lost_fault(device: Device, before: Inventory, wall: float) -> Fault:
    since = {fault.key: fault.since_seconds for fault in before.faults}
    first_seen = since.get((FaultKind.LOST, device.uuid), wall)
    return Fault(FaultKind.LOST, first_seen, device.uuid, "no longer listed by the driver")
