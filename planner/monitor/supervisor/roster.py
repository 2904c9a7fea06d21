"""The cards over the life of several samplers: known by UUID, and not forgotten because one sampler ended."""

from collections.abc import Mapping
from dataclasses import replace

from planner.monitor.host.pci import same_card
from planner.monitor.readings.faults import Fault, FaultKind
from planner.monitor.readings.inventory import Device, Inventory, in_order


def is_first_word(inventory: Inventory) -> bool:
    """Return whether a sampler only says that it lives, before it looked for cards."""
    return not (inventory.driver_version or inventory.devices or inventory.faults)


def merge(before: Inventory, now: Inventory, wall: float) -> Inventory:
    """Return `now` with the cards of `before` that are missing in it; `wall` is in seconds since 1970.

    Where a driver answers and lists other cards, those that are missing are lost; where none answers, they stay as
    they were. One that is only told by its place (it sleeps, or cannot be opened) is the card that was known there.
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
        in_order(
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
