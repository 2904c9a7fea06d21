"""Devices and their order."""

from state_kit import A, B

from planner.monitor.readings.inventory import Device, sort_devices
from planner.monitor.readings.reading import Cause, Reading, missing


def test_an_unknown_fact_is_none():
    device = Device("GPU-a", "a", 0, facts={"memory_total_bytes": Reading(5), "ecc_enabled": missing(Cause.MIG)})
    assert device.fact("memory_total_bytes") == 5
    assert device.fact("ecc_enabled") is None
    assert device.fact("shutdown_celsius") is None


def test_cards_are_sorted_by_index_with_their_instances():
    parts = [Device(f"MIG-{at}", "i", at, mig_parent=A) for at in (1, 0)]
    stray = Device("MIG-9", "i", 2, mig_parent="GPU-unknown")
    found = sort_devices((stray, Device(B, "b", 1), *parts, Device(A, "a", 0, state="lost")))
    assert [device.uuid for device in found] == [A, "MIG-0", "MIG-1", B, "MIG-9"]
