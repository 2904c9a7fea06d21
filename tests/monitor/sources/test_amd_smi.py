"""AMD's management library, built from C with its own structures."""

import pytest
from cards_kit import AMD, RADEON

from planner.monitor.readings.reading import Cause, Reading, missing


def test_amds_library_adds_energy_and_errors(amd):
    (device,) = amd.find(0.0)
    assert (device.uuid, device.pci_bus_id) == (RADEON, "0000:03:00.0")
    fast = {
        "utilization_fraction": Reading(0.88),
        # A firmware that does not know says so by the largest number.
        "memory_controller_fraction": missing(Cause.NOT_SUPPORTED),
        "energy_joules": Reading(31.0),
    }
    assert amd.read(device, 1.0, slow=False) == fast
    assert amd.read(device, 1.0, slow=True) == fast | {"ecc_corrected": Reading(5), "ecc_uncorrected": Reading(1)}
    assert amd.find(4.0) == (device,)
    assert amd.processes((device,), 4.0) == ()


@pytest.mark.parametrize(("code", "cause"), [(2, Cause.NOT_SUPPORTED), (10, Cause.NO_PERMISSION), (7, Cause.FAILED)])
def test_what_amds_library_refuses_is_told_apart(amd, near_vendors, code, cause):
    (device,) = amd.find(0.0)
    near_vendors.say_of_vendors(**AMD, error__amdsmi_get_gpu_activity=code)
    readings = amd.read(device, 1.0, slow=False)
    assert readings["utilization_fraction"] == missing(cause)
    assert readings["energy_joules"] == Reading(31.0)


def test_a_library_that_fails_to_shut_down_is_left(amd, near_vendors):
    amd.find(0.0)
    near_vendors.say_of_vendors(**AMD, error__amdsmi_shut_down=7)
    amd.close()
    assert amd._library is None
