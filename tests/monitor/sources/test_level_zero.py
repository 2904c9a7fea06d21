"""Intel's Level Zero, built from C with its own structures."""

import pytest
from cards_kit import ARC, GIB, INTEL

from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.sources.source import CardGoneError


def test_intels_library_adds_memory_and_temperatures(intel, near_vendors):
    (device,) = intel.find(0.0)
    assert (device.uuid, device.fact("memory_total_bytes")) == (ARC, 16 * GIB)
    assert intel.read(device, 1.0, slow=True) == {
        "memory_used_bytes": Reading(6 * GIB),
        "memory_free_bytes": Reading(10 * GIB),
        "utilization_fraction": missing(Cause.NOT_YET),
        "temperature_celsius": Reading(51),
        "memory_temperature_celsius": Reading(62),
    }
    near_vendors.say_of_vendors(**INTEL, intel__active=750_000, intel__time=1_000_000)
    assert intel.read(device, 2.0, slow=False)["utilization_fraction"] == Reading(0.75)
    assert intel.find(4.0) == (device,)
    assert intel.processes((device,), 4.0) == ()


def test_a_card_whose_memory_is_the_machines_has_none_of_its_own(intel, near_vendors):
    near_vendors.say_of_vendors(**INTEL, intel__local=0, error__zesDeviceEnumEngineGroups=0x78000003)
    (device,) = intel.find(0.0)
    assert device.facts == {}
    assert intel.read(device, 1.0, slow=False).keys() == {"temperature_celsius", "memory_temperature_celsius"}


def test_a_card_that_intels_library_calls_lost_is_gone(intel, near_vendors):
    (device,) = intel.find(0.0)
    near_vendors.say_of_vendors(**INTEL, error__zesMemoryGetState=0x70000001)
    with pytest.raises(CardGoneError, match="zesMemoryGetState"):
        intel.read(device, 1.0, slow=False)
    near_vendors.say_of_vendors(**INTEL, error__zesMemoryGetState=0x70010000)
    assert intel.read(device, 1.0, slow=False)["memory_used_bytes"] == missing(Cause.NO_PERMISSION)
