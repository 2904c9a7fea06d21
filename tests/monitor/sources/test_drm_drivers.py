"""What each driver of Linux' DRM tells in which file."""

import pytest
from cards_kit import (
    APU,
    ARC,
    BATTLEMAGE,
    GIB,
    RADEON,
    apu,
    arc,
    battlemage,
    metrics_table,
    radeon,
    uevent,
    write_cards,
    write_files,
)

from planner.monitor.driver_calls import DriverCalls
from planner.monitor.host.processes import HostProcesses
from planner.monitor.readings.reading import Cause, missing
from planner.monitor.sources.drm import DrmSource
from planner.monitor.sources.drm_drivers import amd_clock_reasons
from planner.monitor.sources.files import CardFiles


@pytest.fixture
def source(tmp_path):
    return DrmSource(tmp_path, HostProcesses(), sees_same_pids=True)


def _read(source, now=1.0, *, slow=True):
    return {device.uuid: source.read(device, now, slow=slow) for device in source.find(now)}


def _values(readings):
    return {name: reading.value for name, reading in readings.items()}


def test_a_radeon_is_read_in_the_units_of_the_metrics(source, tmp_path):
    write_cards(tmp_path, radeon())
    (device,) = source.find(0.0)
    assert (device.uuid, device.name, device.driver) == (RADEON, "AMD GPU 744c", "amdgpu")
    assert _values(device.facts) == {
        "memory_total_bytes": 24 * GIB,
        "shared_memory_total_bytes": 32 * GIB,
        "power_default_watts": 339,
        "power_least_watts": 305,
        "power_most_watts": 390,
        "sm_clock_most_mhz": 2526,
        "memory_clock_most_mhz": 1249,
        "slowdown_celsius": 100,
        "shutdown_celsius": 105,
        "pcie_generation_most": 4,
        "pcie_width_most": 16,
    }
    fast = {
        "utilization_fraction": 0.97,
        "memory_controller_fraction": 0.41,
        "memory_used_bytes": 6 * GIB,
        "shared_memory_used_bytes": GIB,
        "power_watts": 312,
        "power_reported_watts": 312,
        "temperature_celsius": 61,
        "hotspot_temperature_celsius": 78,
        "memory_temperature_celsius": 84,
        "sm_clock_mhz": 2482,
        "memory_clock_mhz": 1249,
    }
    slow = {
        "fan_fraction": 0.4,
        "power_limit_watts": 339,
        "pcie_generation": 4,
        "pcie_width": 16,
        "pcie_replays": 2,
        "ecc_corrected": 7,
        "ecc_uncorrected": 1,
        "retired_uncorrected": 2,
        "retirement_pending": 1,
    }
    assert _values(source.read(device, 1.0, slow=False)) == fast
    assert _values(source.read(device, 1.0, slow=True)) == fast | slow
    assert source.calls.calls > 20


def test_an_apu_uses_the_ram_that_is_set_aside_and_the_rest_of_it(source, tmp_path):
    write_cards(tmp_path, apu())
    (device,) = source.find(0.0)
    assert device.fact("unified_memory") == 1
    assert device.fact("memory_total_bytes") == 96.5 * GIB
    readings = source.read(device, 1.0, slow=True)
    assert readings["memory_used_bytes"].value == 40.25 * GIB
    assert (readings["power_watts"].value, readings["temperature_celsius"].value) == (55, 58)
    assert not readings.keys() & {"fan_fraction", "hotspot_temperature_celsius", "ecc_corrected"}


def test_an_apu_that_says_little_is_there(source, tmp_path):
    write_cards(
        tmp_path,
        uevent("amdgpu", "1002:1586", "0000:c4:00.0")
        | {"device/hwmon/hwmon1/in1_label": "vddnb", "device/hwmon/hwmon1/in1_input": "1"},
    )
    (device,) = source.find(0.0)
    assert (device.uuid, device.facts["memory_total_bytes"]) == (APU, missing(Cause.NOT_SUPPORTED))
    assert source.read(device, 1.0, slow=False) == {"memory_used_bytes": missing(Cause.NOT_SUPPORTED)}


def test_intels_cards_say_how_long_they_idled_and_what_they_drew(source, tmp_path):
    cards = write_cards(tmp_path, arc(), battlemage())
    first = _read(source, 1.0)
    assert first[ARC]["utilization_fraction"] == first[ARC]["power_watts"] == missing(Cause.NOT_YET)
    # In two seconds, i915's card idles for half a second; of xe's two parts, one works all the time.
    write_files(cards[0], arc(energy=1300.0, idle_ms=1000))
    write_files(cards[1], battlemage(idle_ms=(1000, 6000)))
    second = _read(source, 3.0)
    assert second[ARC]["utilization_fraction"].value == 0.75
    assert second[ARC]["power_watts"].value == 150
    assert second[ARC]["clock_reasons"].value == 0x4
    assert second[ARC]["sm_clock_mhz"].value == 2100
    assert second[ARC]["power_limit_watts"].value == 190
    assert second[BATTLEMAGE]["utilization_fraction"].value == 1
    assert second[BATTLEMAGE]["clock_reasons"].value == 0x20
    assert second[BATTLEMAGE]["temperature_celsius"].value == 55
    assert second[BATTLEMAGE]["memory_temperature_celsius"].value == 62
    # Neither driver tells the memory of the card in files.
    assert "memory_used_bytes" not in second[ARC].keys() | second[BATTLEMAGE].keys()


POWER_CAP, SLOWDOWN, THERMAL, HOT = 0x4, 0x8, 0x20, 0x40


@pytest.mark.parametrize(
    ("bits", "reasons"),
    [
        ((), 0),
        ((0,), POWER_CAP),  # PPT0
        ((7,), POWER_CAP),  # SPPT_APU
        ((16,), SLOWDOWN),  # TDC_GFX
        ((23,), SLOWDOWN),  # APCC
        ((32,), THERMAL),  # TEMP_GPU
        ((36, 0), THERMAL | POWER_CAP),  # TEMP_HOTSPOT, PPT0
        ((44, 47), HOT),  # VRHOT0, PROCHOT_GFX
        ((56, 57), 0),  # PPM, FIT: no counterpart
    ],
)
def test_each_bit_is_the_reason_that_its_name_says(bits, reasons):
    assert amd_clock_reasons(metrics_table(sum(1 << bit for bit in bits))) == reasons


@pytest.mark.parametrize(("revision", "size"), [((2, 2), 128), ((2, 3), 128), ((2, 4), 128)])
def test_tables_of_processors_with_graphics_have_it_elsewhere(revision, size):
    assert amd_clock_reasons(metrics_table(1 << 32, revision, size)) == THERMAL


def test_what_follows_the_field_is_not_read():
    assert amd_clock_reasons(metrics_table(1 << 32) + b"\xff" * 8) == THERMAL


@pytest.mark.parametrize(
    "table",
    [
        b"",
        metrics_table(1)[:-1],
        metrics_table(1, (1, 4)),
        metrics_table(1, (3, 0)),
        metrics_table(2**64 - 1),  # the chip does not fill it
    ],
)
def test_a_table_that_does_not_tell_is_no_statement(table):
    assert amd_clock_reasons(table) is None


def test_a_radeon_tells_why_it_is_slowed(tmp_path):
    (folder,) = write_cards(tmp_path, radeon())
    source = DrmSource(tmp_path, HostProcesses(), sees_same_pids=True)
    (device,) = source.find(0.0)
    assert "clock_reasons" not in source.read(device, 1.0, slow=False)
    (folder / "device/gpu_metrics").write_bytes(metrics_table(1 << 36))
    assert source.read(device, 2.0, slow=False)["clock_reasons"].value == THERMAL
    assert CardFiles(DriverCalls(), RADEON, folder).content("device/none") == b""
