"""Cards of other vendors beside NVIDIA's, and without them, read by a real sampler."""

import os

import psutil
import pytest
from cards_kit import APU, ARC, GIB, RADEON, apu, arc, open_card, radeon, write_cards, write_files
from fake_nvml_kit import FAST, HURRIED, A, card, keys_of, states_of

from planner.monitor.readings.faults import FaultKind
from planner.monitor.readings.metrics import DEVICE_METRICS
from planner.monitor.readings.reading import Cause
from planner.monitor.readings.report import state_report


def _is_read(latest, *uuids):
    return all(latest.reading(uuid, "pcie_width").cause is not Cause.NOT_YET for uuid in uuids)


def test_cards_of_all_vendors_are_read_beside_each_other(fake_nvml):
    fake_nvml.say(card(0, A), **{"0__process__compute": f"{os.getpid()}:4096"})
    write_cards(fake_nvml.root, radeon(), apu(), arc())
    client = {"drm-pdev": "0000:03:00.0", "drm-engine-compute": "5 ns", "drm-memory-vram": "1024 KiB"}
    open_card(fake_nvml.root, os.getpid(), client)
    with fake_nvml.supervisor():
        latest = fake_nvml.wait_for(lambda latest: _is_read(latest, A, RADEON, APU, ARC) and len(latest.processes) == 2)
    devices = latest.inventory.devices
    assert [(device.index, device.uuid, device.driver) for device in devices] == [
        (0, A, ""),
        (1, RADEON, "amdgpu"),
        (2, APU, "amdgpu"),
        (3, ARC, "i915"),
    ]
    assert latest.reading(A, "utilization_fraction").value == 0.5
    assert latest.reading(RADEON, "utilization_fraction").value == 0.97
    # Of every quantity it is said whether this driver reports it.
    silent = {metric.name for metric in DEVICE_METRICS if latest.reading(ARC, metric.name).cause is Cause.NOT_SUPPORTED}
    assert {"memory_used_bytes", "ecc_corrected", "fan_fraction", "sm_active_fraction"} <= silent
    assert {(each.uuid, each.kind, each.memory_bytes.value) for each in latest.processes} == {
        (A, "compute", 4096),
        (RADEON, "compute", 2**20),
    }
    report = state_report(latest)["devices"]
    assert [device["driver"] for device in report] == [None, "amdgpu", "amdgpu", "i915"]
    assert report[1]["processes"][0]["missing"]["decoder_fraction"] == Cause.NOT_SUPPORTED


@pytest.mark.parametrize("listed", [False, True])
def test_without_nvidias_driver_it_is_missed_only_where_a_card_of_nvidia_is(fake_nvml, listed):
    fake_nvml.say(error__nvmlInitWithFlags=9)
    write_cards(fake_nvml.root, radeon())
    if listed:
        fake_nvml.say_power_state("active")
    with fake_nvml.supervisor():
        latest = fake_nvml.wait_for(lambda latest: _is_read(latest, RADEON))
    assert latest.reading(RADEON, "memory_used_bytes").value == 6 * GIB
    assert [device.index for device in latest.inventory.devices] == [0]
    assert ((FaultKind.NO_DRIVER, None) in keys_of(latest)) == listed


def test_a_card_that_is_pulled_out_is_lost_while_the_others_are_read(fake_nvml):
    fake_nvml.say(card(0, A))
    first, _ = write_cards(fake_nvml.root, radeon(), arc())
    with fake_nvml.supervisor():
        fake_nvml.wait_for(lambda latest: _is_read(latest, RADEON, ARC))
        first.rename(fake_nvml.root / "gone")
        fake_nvml.wait_for_fault(FaultKind.LOST, RADEON)
        fake_nvml.wait_for(lambda latest: states_of(latest) == {A: "running", RADEON: "lost", ARC: "running"})
        fake_nvml.wait_for_sample(lambda sample: ARC in sample.devices and RADEON not in sample.devices)
        (fake_nvml.root / "gone").rename(first)
        fake_nvml.wait_until_over(FaultKind.LOST, RADEON)
        fake_nvml.wait_for(lambda latest: latest.reading(RADEON, "utilization_fraction").value == 0.97)


def test_a_file_that_does_not_answer_silences_its_card_alone(fake_nvml):
    fake_nvml.say(card(0, A))
    first, _ = write_cards(fake_nvml.root, radeon(), arc())
    busy = first / "device/gpu_busy_percent"
    busy.unlink()
    # Nobody writes into it: opening it never returns.
    os.mkfifo(busy)
    with fake_nvml.supervisor(FAST._replace(hang_seconds=0.15)):
        fault = fake_nvml.wait_for_fault(FaultKind.CARD_NOT_ANSWERING, RADEON)
        assert fault.detail == "reading gpu_busy_percent"
        latest = fake_nvml.wait_for(lambda latest: _is_read(latest, A, ARC))
        assert latest.reading(RADEON, "power_watts").cause is Cause.NO_ANSWER
        # The call that hung returns, and after a pause the card is read again.
        os.close(os.open(busy, os.O_RDWR | os.O_NONBLOCK))
        busy.unlink()
        write_files(first, {"device/gpu_busy_percent": "12"})
        fake_nvml.wait_for(lambda latest: latest.reading(RADEON, "utilization_fraction").value == 0.12)
    assert (FaultKind.CARD_NOT_ANSWERING, RADEON) not in keys_of(fake_nvml.latest)


def test_cards_survive_a_crash_of_nvidias_library(fake_nvml):
    fake_nvml.say(card(0, A))
    write_cards(fake_nvml.root, radeon())
    with fake_nvml.supervisor():
        fake_nvml.wait_for(lambda latest: _is_read(latest, A, RADEON))
        fake_nvml.say({**card(0, A), "0.crash.nvmlDeviceGetUtilizationRates": 1})
        fake_nvml.wait_for_fault(FaultKind.SAMPLER_CRASHED)
        # Until NVIDIA's driver is opened again, its card is neither lost nor read, and the other is read.
        fake_nvml.wait_for_sample(lambda sample: RADEON in sample.devices and A not in sample.devices)
        assert states_of(fake_nvml.latest)[A] == "running"


def test_releasing_the_drivers_releases_all_of_them(fake_nvml):
    fake_nvml.say(card(0, A))
    write_cards(fake_nvml.root, radeon())
    with fake_nvml.supervisor(timeouts=HURRIED) as supervisor:
        fake_nvml.wait_for(lambda latest: _is_read(latest, A, RADEON))
        supervisor.release()
        fake_nvml.wait_for_sample(lambda sample: not sample.devices)
        supervisor.resume()
        fake_nvml.wait_for_sample(lambda sample: {A, RADEON} <= sample.devices.keys())


def test_vendors_libraries_add_to_what_the_system_shows(fake_vendors):
    fake_vendors.say(card(0, A))
    fake_vendors.say_of_vendors(
        amd=1, amd__bus=3, amd__energy=10**6, amd__ce=9, intel=1, intel__size=16 * GIB, intel__free=4 * GIB
    )
    write_cards(fake_vendors.root, radeon(), arc())
    with fake_vendors.supervisor():
        latest = fake_vendors.wait_for(
            lambda latest: _is_read(latest, A, RADEON, ARC) and latest.reading(RADEON, "energy_joules").value
        )
        # Each card is listed once; of what both report, the system's own figures stay.
        assert [(device.uuid, device.driver) for device in latest.inventory.devices] == [
            (A, ""),
            (RADEON, "amdgpu, amd-smi"),
            (ARC, "i915, level-zero"),
        ]
        assert latest.reading(RADEON, "energy_joules").value == 15.5
        assert latest.reading(RADEON, "ecc_corrected").value == 7
        assert latest.reading(ARC, "memory_used_bytes").value == 12 * GIB
        assert latest.inventory.devices[2].fact("memory_total_bytes") == 16 * GIB


def test_a_library_that_hangs_does_not_hide_what_the_system_shows(fake_vendors):
    fake_vendors.say(card(0, A))
    fake_vendors.say_of_vendors(amd=1, amd__bus=3, hang__amdsmi_get_gpu_activity=1)
    write_cards(fake_vendors.root, radeon())
    with fake_vendors.supervisor(FAST._replace(hang_seconds=0.15)):
        fake_vendors.wait_for_fault(FaultKind.SOURCE_FAILED, RADEON, "amd-smi: amdsmi_get_gpu_activity hangs")
        sample = fake_vendors.wait_for_sample(lambda sample: RADEON in sample.devices)
    assert sample.devices[RADEON]["power_watts"].value == 312
    assert fake_vendors.latest.reading(RADEON, "utilization_fraction").value == 0.97


def test_a_library_that_cannot_be_opened_is_named_and_tried_again(fake_vendors):
    fake_vendors.say(card(0, A))
    fake_vendors.say_of_vendors(error__amdsmi_init=2)
    write_cards(fake_vendors.root, radeon())
    with fake_vendors.supervisor():
        fault = fake_vendors.wait_for_fault(FaultKind.SOURCE_FAILED)
        assert fault.detail == "libamd_smi: amdsmi_init returned 0x2"
        fake_vendors.wait_for(lambda latest: _is_read(latest, A, RADEON))
        fake_vendors.say_of_vendors(amd=1, amd__bus=3)
        fake_vendors.wait_until_over(FaultKind.SOURCE_FAILED)


def _program(driver, monkeypatch, name, line):
    folder = driver.folder / "programs"
    folder.mkdir()
    (folder / name).write_text(f"#!/bin/sh\nwhile echo '{line}'; do sleep 0.2; done\n")
    (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_an_apple_chip_is_read_by_macmon(fake_nvml, monkeypatch):
    fake_nvml.say(error__nvmlInitWithFlags=9)
    line = '{"gpu_active_ratio": 0.4, "gpu_power": 9.5, "memory": {"ram_total": 100, "ram_usage": 60}}'
    _program(fake_nvml, monkeypatch, "macmon", line)
    with fake_nvml.supervisor():
        latest = fake_nvml.wait_for(lambda latest: latest.reading("Apple-0", "power_watts").value == 9.5)
    (device,) = latest.inventory.devices
    assert (device.name, device.driver, device.fact("unified_memory")) == ("Apple chip GPU", "macmon", 1)
    assert latest.reading("Apple-0", "memory_used_bytes").value == 60
    assert keys_of(latest) == set()


def test_a_jetson_is_one_card_of_nvml_and_tegrastats(fake_nvml, monkeypatch):
    # NVML of a Jetson knows neither its memory nor its power, and it is on no bus.
    fake_nvml.say(card(0, A, memory__total=None, power=None, pci=None, utilization=None))
    _program(
        fake_nvml, monkeypatch, "tegrastats", "RAM 2448/7772MB GR3D_FREQ 61%@[1007] gpu@44.2C VDD_GPU_SOC 5139mW/5mW"
    )
    with fake_nvml.supervisor():
        latest = fake_nvml.wait_for(lambda latest: latest.reading(A, "power_watts").value is not None)
    assert [device.uuid for device in latest.inventory.devices] == [A]
    assert latest.reading(A, "utilization_fraction").value == 0.61
    assert latest.reading(A, "power_watts").value == 5.139
    # What NVML reports stays.
    assert latest.reading(A, "temperature_celsius").value == 60


def test_the_memory_of_gb10_is_the_machines(fake_nvml):
    fake_nvml.say(card(0, A, memory__total=None))
    with fake_nvml.supervisor():
        latest = fake_nvml.wait_for(lambda latest: _is_read(latest, A))
        # Also where it is said what the card never reports.
        for sample in (fake_nvml.wait_for_sample(lambda sample: A in sample.devices) for _ in range(5)):
            assert sample.devices[A]["memory_used_bytes"].value
    (device,) = latest.inventory.devices
    total = psutil.virtual_memory().total
    assert (device.fact("unified_memory"), device.fact("memory_total_bytes")) == (1, total)
    used, free = (latest.reading(A, f"memory_{part}_bytes").value for part in ("used", "free"))
    assert used + free == total
    assert latest.reading(A, "memory_reserved_bytes").cause is Cause.NOT_SUPPORTED
