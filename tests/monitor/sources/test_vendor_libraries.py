"""The libraries of AMD and Intel, built from C with their own structures."""

import pytest
from cards_kit import ARC, GIB, RADEON, arc, radeon, write_cards, write_files

from planner.monitor.readings.faults import FaultKind
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.sources.amd_smi import AmdSmiSource
from planner.monitor.sources.level_zero import LevelZeroSource
from planner.monitor.sources.source import CardGoneError, SourceFailedError

AMD = {"amd": 1, "amd__bus": 3, "amd__gfx": 88, "amd__energy": 2_000_000, "amd__ce": 5, "amd__ue": 1}
INTEL = {
    "intel": 1,
    "intel__size": 16 * GIB,
    "intel__free": 10 * GIB,
    "intel__celsius": 51,
    "intel__memory_celsius": 62,
}


@pytest.fixture
def amd(near_vendors):
    write_cards(near_vendors.root, radeon())
    near_vendors.say_of_vendors(**AMD)
    source = AmdSmiSource(near_vendors.root)
    yield source
    source.close()


@pytest.fixture
def intel(near_vendors):
    write_cards(near_vendors.root, arc())
    near_vendors.say_of_vendors(**INTEL)
    source = LevelZeroSource(near_vendors.root)
    yield source
    source.close()


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


@pytest.mark.parametrize(("code", "cause"), [(2, Cause.NOT_SUPPORTED), (10, Cause.NO_PERMISSION), (7, Cause.FAILED)])
def test_what_amds_library_refuses_is_told_apart(amd, near_vendors, code, cause):
    (device,) = amd.find(0.0)
    near_vendors.say_of_vendors(**AMD, error__amdsmi_get_gpu_activity=code)
    readings = amd.read(device, 1.0, slow=False)
    assert readings["utilization_fraction"] == missing(cause)
    assert readings["energy_joules"] == Reading(31.0)


def test_a_card_that_intels_library_calls_lost_is_gone(intel, near_vendors):
    (device,) = intel.find(0.0)
    near_vendors.say_of_vendors(**INTEL, error__zesMemoryGetState=0x70000001)
    with pytest.raises(CardGoneError, match="zesMemoryGetState"):
        intel.read(device, 1.0, slow=False)
    near_vendors.say_of_vendors(**INTEL, error__zesMemoryGetState=0x70010000)
    assert intel.read(device, 1.0, slow=False)["memory_used_bytes"] == missing(Cause.NO_PERMISSION)


@pytest.mark.parametrize(("name", "function"), [("amd", "amdsmi_init"), ("intel", "zesInit")])
def test_a_library_that_cannot_be_opened_is_named(request, near_vendors, name, function):
    source = request.getfixturevalue(name)
    near_vendors.say_of_vendors(**{f"error__{function}": 34})
    with pytest.raises(SourceFailedError, match=f"{function} returned 0x22") as caught:
        source.find(0.0)
    assert caught.value.kind is FaultKind.SOURCE_FAILED


@pytest.mark.parametrize("name", ["amd", "intel"])
def test_without_its_library_or_its_cards_a_source_has_none(request, near_vendors, monkeypatch, name):
    source = request.getfixturevalue(name)
    (device,) = source.find(0.0)
    source.close()
    with pytest.raises(CardGoneError):
        source.read(device, 1.0, slow=False)
    for module in ("amd_smi", "level_zero"):
        monkeypatch.setattr(f"planner.monitor.sources.{module}._NAMES", ("libno_such_library.so",))
    fresh = type(source)(near_vendors.root)
    assert fresh.find(0.0) == ()
    # A card that the system may suspend is not asked: the library would keep it awake.
    write_files(near_vendors.root / "sys/class/drm/card0", {"device/power/control": "auto"})
    assert source.find(0.0) == ()


def test_a_function_that_this_version_lacks_is_missing(amd, monkeypatch):
    (device,) = amd.find(0.0)
    monkeypatch.setattr(type(amd._library), "call", _without("amdsmi_get_energy_count", type(amd._library).call))
    assert amd.read(device, 1.0, slow=False)["energy_joules"] == missing(Cause.MISSING_SYMBOL)


def _without(name, call):
    def lacking(self, function, *arguments):
        return call(self, "amdsmi_no_such_function" if function == name else function, *arguments)

    return lacking


def test_a_library_that_fails_to_shut_down_is_left(amd, near_vendors):
    amd.find(0.0)
    near_vendors.say_of_vendors(**AMD, error__amdsmi_shut_down=7)
    amd.close()
    assert amd._library is None
