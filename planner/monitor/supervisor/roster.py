"""Cards across several samplers: identified by UUID, and remembered when a sampler ends."""

from collections.abc import Mapping
from dataclasses import replace

from planner.monitor.host.pci import same_card
from planner.monitor.readings.faults import Fault, FaultKind
from planner.monitor.readings.inventory import Device, Inventory, sort_devices


def is_startup_inventory(inventory: Inventory) -> bool:
    """Return whether an inventory is a sampler's first sign of life, before it looked for cards."""
    return not (inventory.driver_version or inventory.devices or inventory.faults)


def merge_inventories(before: Inventory, now: Inventory, wall: float) -> Inventory:
    """Return `now` with the cards of `before` that it lacks; `wall` is in seconds since 1970.

    If a driver responds and lists other cards, missing ones are lost; if none responds, they keep their state. A card
    known only by its address (it sleeps, or cannot be opened) is the card that was known there.
    """
    listed = {device.uuid for device in now.devices}
    gone = [device for device in before.devices if device.uuid not in listed and device.uuid.startswith("GPU-")]
    if not gone:
        return now
    answers = any(device.state == "running" for device in now.devices)
    known_as = {place.uuid: device for place in now.devices for device in gone if _is_place_of(place, device)}
    recognised = {device.uuid for device in known_as.values()}
    missing = [device for device in gone if device.uuid not in recognised]
    versions = now if now.driver_version else before
    return Inventory(
        versions.driver_version,
        versions.nvml_version,
        versions.cuda_version,
        sort_devices(
            (
                *(_recognised(device, known_as) for device in now.devices),
                *(replace(device, state="lost") if answers else device for device in missing),
            )
        ),
        (
            *(_of_recognised(fault, known_as) for fault in now.faults),
            *(_lost(device, before, wall) for device in missing if answers),
        ),
    )


def _is_place_of(place: Device, device: Device) -> bool:
    if place.uuid.startswith("pci-"):
        return same_card(device.pci_bus_id, place.pci_bus_id)
    return place.uuid == f"index-{device.index}"


def _recognised(device: Device, known_as: Mapping[str, Device]) -> Device:
    known = known_as.get(device.uuid)
    return device if known is None else replace(known, state=device.state)


def _of_recognised(fault: Fault, known_as: Mapping[str, Device]) -> Fault:
    known = known_as.get(fault.uuid or "")
    return fault if known is None else replace(fault, uuid=known.uuid)


def _lost(device: Device, before: Inventory, wall: float) -> Fault:
    since = {fault.key: fault.since_seconds for fault in before.faults}
    first_seen = since.get((FaultKind.LOST, device.uuid), wall)
    return Fault(FaultKind.LOST, first_seen, device.uuid, "the driver does not list it any more")
