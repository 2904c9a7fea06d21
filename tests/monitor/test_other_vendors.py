"""Cards of other vendors beside NVIDIA's, and without them, read by a real sampler."""

import os

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
