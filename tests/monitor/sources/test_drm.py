"""Cards that Linux' DRM lists: found, asleep, gone, and their names."""

import pytest
from cards_kit import (
    GIB,
    RADEON,
    arc,
    radeon,
    uevent,
    write_cards,
    write_files,
)

from planner.monitor.host.processes import HostProcesses
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.sources.drm import DrmSource
from planner.monitor.sources.source import CardGoneError


@pytest.fixture
def source(tmp_path):
    return DrmSource(tmp_path, HostProcesses(), sees_same_pids=True)


def _read(source, now=1.0, *, slow=True):
    return {device.uuid: source.read(device, now, slow=slow) for device in source.find(now)}


def test_what_a_driver_does_not_tell_is_missing_and_the_card_is_there(source, tmp_path):
    write_cards(
        tmp_path,
        uevent("i915", "8086:4680", "0000:00:02.0"),
        uevent("nouveau", "10DE:2204", "0000:01:00.0") | {"device/hwmon/hwmon0/temp1_input": "40000"},
        uevent("amdgpu", "1002:744C", "0000:03:00.0"),
        # What only shows a picture, and what NVIDIA's own driver tells through NVML.
        uevent("ast", "1A03:2000", "0000:02:00.0"),
        uevent("nvidia", "10DE:2204", "0000:04:00.0"),
        {"device/uevent": "garbage"},
    )
    (tmp_path / "sys/class/drm/card9").mkdir()
    read = _read(source)
    assert read == {
        "Intel-0000:00:02.0": {"utilization_fraction": missing(Cause.NOT_SUPPORTED)},
        "NVIDIA-0000:01:00.0": {"temperature_celsius": Reading(40)},
        RADEON: {},
    }


def test_a_card_that_is_pulled_out_is_gone(source, tmp_path):
    (folder,) = write_cards(tmp_path, radeon())
    (device,) = source.find(0.0)
    folder.rename(tmp_path / "gone")
    with pytest.raises(CardGoneError):
        source.read(device, 1.0, slow=False)
    assert source.find(2.0) == ()
    (tmp_path / "gone").rename(folder)
    assert _read(source)[RADEON]["utilization_fraction"].value == 0.97


def test_a_card_that_sleeps_is_not_woken_and_keeps_its_name(source, tmp_path):
    asleep = {"device/power/control": "auto", "device/power/runtime_status": "suspended"}
    (folder,) = write_cards(tmp_path, radeon() | asleep)
    (device,) = source.find(0.0)
    assert (device.state, device.facts, source.calls.calls) == ("asleep", {}, 0)
    write_files(folder, {"device/power/runtime_status": "active"})
    (device,) = source.find(1.0)
    assert device.state == "running"
    write_files(folder, asleep)
    (device,) = source.find(2.0)
    assert (device.state, device.fact("memory_total_bytes")) == ("asleep", 24 * GIB)


def test_an_idle_card_that_may_sleep_is_left_alone(source, tmp_path):
    write_cards(tmp_path, radeon() | {"device/gpu_busy_percent": "0", "device/power/control": "auto"})
    states = []
    for second in range(0, 30, 2):
        (device,) = source.find(float(second))
        states.append(device.state)
        if device.state == "running":
            source.read(device, float(second), slow=False)
            source.processes([device], float(second))
    # After ten idle seconds, it is not read for fifteen.
    assert states == ["running"] * 6 + ["asleep"] * 7 + ["running"] * 2


def test_names_come_from_the_lists_of_the_distribution(source, tmp_path):
    write_cards(tmp_path, radeon(), arc(), radeon("0000:05:00.0") | uevent("amdgpu", "1002:73BF", "0000:05:00.0"))
    write_files(
        tmp_path / "usr/share", {"libdrm/amdgpu.ids": "# List\n1.0.0\n744C,\tC8,\tAMD Radeon RX 7900 XTX\n744D, 1, X"}
    )
    listed = (
        "1002  Advanced Micro Devices\n\t73bf  Navi 21 [Radeon RX 6800]\n8086  Intel\n\t56a0  DG2 [Arc A770]\n\t56a1  B"
    )
    write_files(tmp_path / "usr/share/misc", {"pci.ids": listed})
    assert [device.name for device in source.find(0.0)] == [
        "AMD Radeon RX 7900 XTX",
        "Intel Arc A770",
        "AMD Radeon RX 6800",
    ]


def test_a_name_that_the_card_itself_tells_comes_first(source, tmp_path):
    write_cards(tmp_path, radeon() | {"device/product_name": "AMD Instinct MI300X"})
    assert [device.name for device in source.find(0.0)] == ["AMD Instinct MI300X"]
