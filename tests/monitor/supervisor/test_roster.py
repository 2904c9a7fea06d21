"""Cards across several samplers."""

from state_kit import DEVICE, A, B

from planner.monitor.readings.faults import Fault, FaultKind
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.supervisor.supervisor import is_startup_inventory, merge_inventories


def test_cards_are_not_forgotten_with_their_sampler():
    before = Inventory("580", "13", "13.0", (DEVICE, Device(B, "b", 1)))
    without_driver = merge_inventories(before, Inventory(faults=(Fault(FaultKind.NO_DRIVER, 1.0),)), 9.0)
    assert without_driver.devices == before.devices
    assert without_driver.driver_version == "580"
    assert [fault.kind for fault in without_driver.faults] == [FaultKind.NO_DRIVER]
    other = merge_inventories(before, Inventory("590", devices=(Device(B, "b", 0),)), 9.0)
    assert {device.uuid: device.state for device in other.devices} == {A: "lost", B: "running"}
    assert other.driver_version == "590"
    (lost,) = other.faults
    assert (lost.kind, lost.uuid, lost.since_seconds) == (FaultKind.LOST, A, 9.0)
    assert merge_inventories(other, Inventory("590", devices=(Device(B, "b", 0),)), 12.0).faults[0].since_seconds == 9.0
    assert merge_inventories(other, before, 12.0) == before


def test_cards_of_other_drivers_are_missed_by_themselves():
    radeon, arc = Device("AMD-1", "r", 1, driver="amdgpu"), Device("Intel-1", "i", 2, driver="xe")
    before = Inventory("580", devices=(DEVICE, radeon, arc))
    # NVIDIA's driver has not been opened again: its card keeps its state, while the system lists all others.
    merged = merge_inventories(before, Inventory(devices=(arc,)), 9.0)
    assert {device.uuid: device.state for device in merged.devices} == {
        A: "running",
        "AMD-1": "lost",
        "Intel-1": "running",
    }
    assert [(fault.kind, fault.uuid) for fault in merged.faults] == [(FaultKind.LOST, "AMD-1")]


def test_instances_and_places_are_not_kept():
    instance = Device("MIG-1", "i", 0, mig_parent=A)
    before = Inventory("580", devices=(DEVICE, instance, Device("pci-0000:01:00.0", "p", 0, state="asleep")))
    assert merge_inventories(before, Inventory("580", devices=(DEVICE,)), 0.0).devices == (DEVICE,)


def test_a_place_is_the_card_that_was_known_there():
    before = Inventory("580", devices=(DEVICE, Device(B, "b", 1, "00000000:02:00.0")))
    asleep = Device("pci-0000:01:00.0", "NVIDIA GPU at 0000:01:00.0", 0, "0000:01:00.0", state="asleep")
    merged = merge_inventories(before, Inventory(devices=(asleep,)), 0.0)
    assert [(device.uuid, device.state) for device in merged.devices] == [(A, "asleep"), (B, "running")]
    closed = Device("index-1", "GPU 1", 1, state="lost")
    fault = Fault(FaultKind.LOST, 5.0, "index-1", "returned 15")
    merged = merge_inventories(before, Inventory("580", devices=(DEVICE, closed), faults=(fault,)), 9.0)
    assert [(device.uuid, device.state) for device in merged.devices] == [(A, "running"), (B, "lost")]
    assert merged.faults == (Fault(FaultKind.LOST, 5.0, B, "returned 15"),)


def test_the_first_word_of_a_sampler_says_nothing():
    assert is_startup_inventory(Inventory())
    assert not is_startup_inventory(Inventory(faults=(Fault(FaultKind.NO_DRIVER, 0.0),)))
    assert not is_startup_inventory(Inventory("580"))
