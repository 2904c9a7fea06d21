"""Every quantity, its sampling interval, and every cause of a missing reading, read by a real sampler."""

import os
from collections import Counter
from itertools import pairwise

from fake_nvml_kit import FAST, A, B, C, card, states_of

from planner.monitor.readings.faults import FaultKind
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.metrics import DEVICE_METRICS, FACTS, HOST_METRICS
from planner.monitor.readings.reading import Cause
from planner.monitor.readings.report import state_report
from planner.monitor.readings.sample import Link, Sample, Xid

MIG = "MIG-11111111-0000-0000-0000-000000000000"
INSTANCE = {
    "1:0.uuid": MIG,
    "1:0.gpu_instance": 3,
    "1:0.compute_instance": 0,
    "1:0.memory.total": 10 * 2**30,
    "1:0.memory.used": 2**30,
}

# What the library says by its own keys and in its own units, and what is made of it.
_FULL = {
    "utilization_fraction": ({"utilization": 50}, 0.5),
    "memory_controller_fraction": ({"memory_utilization": 20}, 0.2),
    "memory_used_bytes": ({"memory.used": 2**30}, 2**30),
    "memory_free_bytes": ({"memory.total": 4 * 2**30}, 2**31),
    "memory_reserved_bytes": ({"memory.reserved": 2**30}, 2**30),
    "shared_memory_used_bytes": ({}, None),
    "bar1_used_bytes": ({"bar1.total": 2**28, "bar1.used": 2**20}, 2**20),
    "power_watts": ({}, 200),
    "power_reported_watts": ({"power": 200_000}, 200),
    "energy_joules": ({"field.83": 5_000}, 5),
    "temperature_celsius": ({"temperature.0": 60}, 60),
    "memory_temperature_celsius": ({"field.82": 70}, 70),
    "hotspot_temperature_celsius": ({}, None),
    "sm_clock_mhz": ({"clock.1": 2520}, 2520),
    "memory_clock_mhz": ({"clock.2": 10501}, 10501),
    "fan_fraction": ({"fan": 30}, 0.3),
    "performance_state": ({"pstate": 2}, 2),
    "power_source": ({"power_source": 1}, 1),
    "compute_mode": ({"compute_mode": 3}, 3),
    "clock_reasons": ({"reasons": 4}, 4),
    "encoder_fraction": ({"encoder": 11, "period": 1}, 0.11),
    "decoder_fraction": ({"decoder": 12}, 0.12),
    "power_capped_fraction": ({"field.74": 0}, 0),
    "software_thermal_fraction": ({"field.251": 0}, 0),
    "hardware_thermal_fraction": ({"field.252": 0}, 0),
    "jpeg_fraction": ({"jpeg": 13}, 0.13),
    "ofa_fraction": ({"ofa": 14}, 0.14),
    "power_limit_watts": ({"power_limit": 450_000}, 450),
    "temperature_margin_celsius": ({"margin": 23}, 23),
    "pcie_transmit_bytes_per_s": ({"pcie.0": 1000}, 1e6),
    "pcie_receive_bytes_per_s": ({"pcie.1": 7000}, 7e6),
    "pcie_generation": ({"pcie_generation": 4}, 4),
    "pcie_width": ({"pcie_width": 16}, 16),
    "pcie_replays": ({"field.94": 1}, 1),
    "nvlink_transmit_bytes_per_s": ({"field.138": 5}, 0),
    "nvlink_receive_bytes_per_s": ({"field.139": 5}, 0),
    "nvlink_active_links": ({"field.91": 2, "link.0.165": 1, "link.0.164": 25781, "link.1.165": 0}, 1),
    "nvlink_errors": ({"link.0.161": 1, "link.0.162": 2, "link.0.163": 3, "link.1.163": 4}, 10),
    "fabric_state": ({"fabric": 3}, 3),
    "ecc_corrected": ({"field.3": 2}, 2),
    "ecc_uncorrected": ({"field.4": 3}, 3),
    "ecc_corrected_lifetime": ({"field.5": 20}, 20),
    "ecc_uncorrected_lifetime": ({"field.6": 30}, 30),
    "retired_corrected": ({"field.29": 6}, 6),
    "retired_uncorrected": ({"field.30": 7}, 7),
    "retirement_pending": ({"field.31": 1}, 1),
    "remapped_corrected": ({"field.142": 4}, 4),
    "remapped_uncorrected": ({"field.143": 5}, 5),
    "remapping_pending": ({"field.144": 1}, 1),
    "remapping_failed": ({"field.145": 0}, 0),
    "graphics_active_fraction": ({"gpm": 1, "gpm.1": 91}, 0.91),
    "sm_active_fraction": ({"gpm.2": 81}, 0.81),
    "sm_occupancy_fraction": ({"gpm.3": 41}, 0.41),
    "tensor_active_fraction": ({"gpm.5": 31}, 0.31),
    "dram_active_fraction": ({"gpm.10": 21}, 0.21),
    "fp64_active_fraction": ({"gpm.11": 51}, 0.51),
    "fp32_active_fraction": ({"gpm.12": 61}, 0.61),
    "fp16_active_fraction": ({"gpm.13": 71}, 0.71),
}
_FULL_FACTS = {
    "memory_total_bytes": ({}, 4 * 2**30),
    "unified_memory": ({}, None),
    "shared_memory_total_bytes": ({}, None),
    "bar1_total_bytes": ({}, 2**28),
    "power_default_watts": ({"power_default": 400_000}, 400),
    "power_least_watts": ({"power_min": 100_000, "power_max": 500_000}, 100),
    "power_most_watts": ({}, 500),
    "sm_clock_most_mhz": ({"max_clock.1": 3000}, 3000),
    "memory_clock_most_mhz": ({"max_clock.2": 11000}, 11000),
    "shutdown_celsius": ({"threshold.0": 100}, 100),
    "slowdown_celsius": ({"threshold.1": 95}, 95),
    "memory_most_celsius": ({"threshold.2": 105}, 105),
    "target_celsius": ({"threshold.3": 87}, 87),
    "pcie_generation_most": ({"pcie_max_generation": 5}, 5),
    "pcie_width_most": ({"pcie_max_width": 16}, 16),
    "compute_capability": ({"cc_major": 9, "cc_minor": 0}, 9),
    "ecc_enabled": ({"ecc": 1}, 1),
    "mig_enabled": ({"mig": 0}, 0),
    "persistence_enabled": ({"persistence": 1}, 1),
    "windows_display_driver": ({"driver_model": 1}, 0),
    "multiprocessors": ({}, None),
    "mig_compute_slices": ({}, None),
    "mig_first_slice": ({}, None),
    "mig_memory_slices": ({}, None),
}


def _full_card():
    keys = {"uuid": A, "name": "NVIDIA Test", "pci": "00000000:01:00.0"}
    for answers, _ in (*_FULL.values(), *_FULL_FACTS.values()):
        keys |= answers
    return {f"0.{key}": value for key, value in keys.items()}


def test_every_quantity_is_read_in_its_unit(fake_nvml):
    assert set(_FULL) == {metric.name for metric in DEVICE_METRICS}
    assert set(_FULL_FACTS) == {metric.name for metric in FACTS}
    fake_nvml.say(_full_card())
    with fake_nvml.supervisor():
        # What is the growth of a counter, and what is measured between two looks, needs a second one.
        latest = fake_nvml.wait_for(
            lambda latest: all(latest.reading(A, name).cause is not Cause.NOT_YET for name in _FULL)
        )
    found = {name: latest.reading(A, name) for name in _FULL}
    assert {name: reading.value for name, reading in found.items()} == {name: told for name, (_, told) in _FULL.items()}
    assert not any(reading.is_implausible for reading in found.values())
    assert latest.links == {A: (Link(0, True, 25781e6, 1, 2, 3), Link(1, False, None, None, None, 4))}
    (device,) = latest.inventory.devices
    assert {name: device.fact(name) for name in _FULL_FACTS} == {name: told for name, (_, told) in _FULL_FACTS.items()}


def test_every_quantity_is_read_as_often_as_it_is_said_to_be(fake_nvml):
    fake_nvml.say(_full_card() | {"0.process.compute": f"{os.getpid()}:4096"})
    with fake_nvml.supervisor(FAST._replace(slow_seconds=0.35, process_seconds=0.75)):
        fake_nvml.wait_for(lambda _latest: len(_samples(fake_nvml)) > 10)
    samples = _samples(fake_nvml)
    fast, slow, every = (
        frozenset(metric.name for metric in DEVICE_METRICS if metric.cadence in of)
        for of in ("fast", "fastslow", "fastslowrare")
    )
    assert {frozenset(sample.devices[A]) for sample in samples} == {fast, slow, every}
    assert [bool(sample.links) for sample in samples] == [set(sample.devices[A]) == every for sample in samples]
    fast, every = ({metric.name for metric in HOST_METRICS if metric.cadence in of} for of in ("fast", "fastslow"))
    assert {frozenset(sample.host) for sample in samples} == {frozenset(fast), frozenset(every)}
    slow = [sample.monotonic_seconds for sample in samples if "fan_fraction" in sample.devices[A]]
    listed = [sample.monotonic_seconds for sample in samples if sample.processes is not None]
    assert min(later - earlier for earlier, later in pairwise(slow)) >= 0.35
    assert len(listed) < len(slow) < len(samples)
    # Field values come in one call for what is quick and in one for what is slow, whatever their number; once in a
    # long while in one for what is rare, one for the number of links, and one for all of them.
    calls = Counter(fake_nvml.calls())
    quick, slower = calls["nvmlDeviceGetUtilizationRates 0"], calls["nvmlDeviceGetFanSpeed 0"]
    assert calls["nvmlDeviceGetFieldValues 0"] == quick + slower + 3


def _samples(driver):
    return [update for update in driver.updates if isinstance(update, Sample) and update.devices]


def test_the_processors_the_memory_the_disks_and_the_network_are_read(fake_nvml):
    fake_nvml.say()
    with fake_nvml.supervisor():
        fake_nvml.wait_for_sample(lambda sample: sample.host["network_receive_bytes_per_s"].value is not None)
        latest = fake_nvml.wait_for(lambda latest: latest.host["cpu_fraction"].value is not None)
    assert set(latest.host) == {metric.name for metric in HOST_METRICS}
    assert len(latest.cores) == os.cpu_count()
    assert 0 <= latest.host["cpu_fraction"].value <= 1
    assert latest.host["memory_used_bytes"].value > 0


def test_many_cards_that_answer_slowly_do_not_hold_up_what_is_quick(fake_nvml):
    """As with PCIe throughput, of which each direction of each card takes 20 ms."""
    slow = {f"{number}.slow.nvmlDeviceGetPcieThroughput": 20 for number in range(8)}
    fake_nvml.say(*(card(number, f"GPU-{number}") for number in range(8)), **slow)
    with fake_nvml.supervisor():
        fake_nvml.wait_for(lambda latest: all("pcie_width" in latest.readings(f"GPU-{at}") for at in range(8)))
    samples = _samples(fake_nvml)
    read = [sum("pcie_width" in readings for readings in sample.devices.values()) for sample in samples]
    assert all(len(sample.devices) == 8 for sample in samples)
    assert max(read) == 1
    assert sum(read) == 8


def test_power_is_what_the_energy_counter_says_where_there_is_one(fake_nvml):
    # 30 J more at each look, of which there are ten in a second; the driver's own figure is another.
    counter = " ".join(str(30_000 * at) for at in range(100))
    fake_nvml.say(card(0, A) | {"0.field.83": counter}, card(1, B))
    with fake_nvml.supervisor():
        fake_nvml.wait_for(lambda latest: latest.readings(B))
        assert fake_nvml.latest.reading(A, "power_watts").value == 200
        latest = fake_nvml.wait_for(lambda latest: latest.reading(A, "power_watts").value != 200)
    # A busy machine looks more rarely, never more often.
    assert 100 < latest.reading(A, "power_watts").value < 320
    assert latest.reading(A, "power_reported_watts").value == 200
    assert latest.reading(B, "power_watts").value == 200


def test_errors_of_the_driver_arrive_once_each_with_their_card(fake_nvml):
    fake_nvml.say(card(0, A), card(1, B), events=("1 8 79", "0 8 31"))
    with fake_nvml.supervisor():
        sample = fake_nvml.wait_for_sample(lambda sample: bool(sample.xids))
        assert sample.xids == (Xid(B, 79), Xid(A, 31))
        assert fake_nvml.wait_for_sample(lambda sample: "fan_fraction" in sample.devices[A]).xids == ()


_CAUSES = (
    # A function that returns an error, and what it means for a reading.
    ("fan_fraction", {"error.nvmlDeviceGetFanSpeed": 3}, Cause.NOT_SUPPORTED),
    ("performance_state", {"error.nvmlDeviceGetPerformanceState": 2}, Cause.NOT_SUPPORTED),
    ("decoder_fraction", {"decoder": None}, Cause.NOT_SUPPORTED),
    ("encoder_fraction", {"error.nvmlDeviceGetEncoderUtilization": 4}, Cause.NO_PERMISSION),
    ("power_limit_watts", {"error.nvmlDeviceGetEnforcedPowerLimit": 13}, Cause.MISSING_SYMBOL),
    ("pcie_width", {"pcie_width": 0xFFFFFFFF}, Cause.HIDDEN),
    ("pcie_generation", {"error.nvmlDeviceGetCurrPcieLinkGeneration": 17}, Cause.HIDDEN),
    ("utilization_fraction", {"error.nvmlDeviceGetUtilizationRates": 27}, Cause.NOT_YET),
    ("memory_temperature_celsius", {"field.82": 1, "field_type.82": 9}, Cause.UNREADABLE),
    ("pcie_transmit_bytes_per_s", {"error.nvmlDeviceGetPcieThroughput": 999}, Cause.FAILED),
    # One of many field values, of which the others are told.
    ("ecc_corrected", {"field.3": 0, "field_error.3": 3}, Cause.NOT_SUPPORTED),
    ("ecc_uncorrected", {"field.4": 0, "field_error.4": 4}, Cause.NO_PERMISSION),
    ("pcie_replays", {"field.94": 0, "field_error.94": 999}, Cause.FAILED),
)


def test_every_cause_of_a_missing_reading_is_told_apart(fake_nvml):
    odd = card(0, A)
    for _name, changes, _cause in _CAUSES:
        odd |= {f"0.{key}": value for key, value in changes.items()}
    odd = {key: value for key, value in odd.items() if value is not None}
    divided = card(1, B, mig=1, mig_devices=1, utilization=None, encoder=None, decoder=None) | INSTANCE
    fake_nvml.say(odd, divided, card(2, C))
    with fake_nvml.supervisor(FAST._replace(look_again_seconds=60.0)):
        fake_nvml.wait_for(lambda latest: latest.readings(MIG) and latest.readings(C))
        fake_nvml.say(odd, divided, card(2, C) | {"2.error.*": 15})
        fake_nvml.wait_for_fault(FaultKind.LOST, C)
        fake_nvml.wait_for(lambda latest: "fan_fraction" in latest.readings(A))
        latest = fake_nvml.wait_for(lambda latest: latest.readings(B))
    assert states_of(latest) == {A: "running", B: "running", MIG: "running", C: "lost"}
    assert {name: latest.reading(A, name).cause for name, *_ in _CAUSES} == {name: why for name, _, why in _CAUSES}
    assert all(latest.reading(A, name).value is None for name, *_ in _CAUSES)
    assert latest.reading(B, "utilization_fraction").cause is Cause.MIG
    assert latest.reading(B, "power_watts").value == 200
    assert latest.reading(MIG, "power_watts").cause is Cause.MIG
    assert latest.reading(MIG, "memory_used_bytes").value == 2**30
    assert latest.reading(C, "power_watts").cause is Cause.LOST
    told = {device["uuid"]: device["missing"] for device in state_report(latest)["devices"]}
    assert {name: told[A][name] for name, *_ in _CAUSES} == {name: why for name, _, why in _CAUSES}
    assert told[C]["power_watts"] is Cause.LOST


def test_what_a_sleeping_card_would_say_is_missing_because_it_sleeps():
    latest = Latest()
    latest.note_inventory(Inventory(devices=(Device("pci-0000:01:00.0", "NVIDIA GPU", 0, state="asleep"),)))
    assert latest.reading("pci-0000:01:00.0", "power_watts").cause is Cause.ASLEEP


def test_newer_drivers_are_asked_for_the_time_slowed_by_heat_by_other_numbers(fake_nvml):
    smoothing = {"0.field.251": 0, "0.field.252": 0}
    counters = {"0.field.269": " ".join(str(10**8 * at) for at in range(200)), "0.field.270": 0}
    fake_nvml.say(card(0, A, reasons=0x40) | smoothing | counters, driver="580.82.07")
    with fake_nvml.supervisor():
        latest = fake_nvml.wait_for(lambda latest: latest.reading(A, "software_thermal_fraction").value)
    assert latest.reading(A, "hardware_thermal_fraction").cause is Cause.UNREADABLE, "0 % beside its own reason"


def test_drivers_without_these_counters_report_no_time_slowed_by_heat(fake_nvml):
    fake_nvml.say(card(0, A) | {f"0.field.{field}": 0 for field in (251, 252, 269, 270)}, driver="570.172.08")
    with fake_nvml.supervisor():
        latest = fake_nvml.wait_for(lambda latest: latest.reading(A, "fan_fraction").value is not None)
    assert latest.reading(A, "software_thermal_fraction").cause is Cause.MISSING_SYMBOL
    assert latest.reading(A, "hardware_thermal_fraction").value is None


def _mig_card(**changes):
    instance = {
        "1:0.name": "NVIDIA H100 80GB HBM3 MIG 3g.40gb",
        "1:0.units": 60,
        "1:0.compute_slices": 3,
        "1:0.gpm.1": 80,
        "1.gi.3": "9:4:4",
    }
    return card(1, B, mig=1, mig_devices=7, gpm=1) | INSTANCE | instance | changes


def test_an_instance_has_a_profile_and_a_place_and_its_engine_stands_in_for_utilization(fake_nvml):
    fake_nvml.say(card(0, A), _mig_card(**{"1:3.gpm.1": 80}))
    with fake_nvml.supervisor():
        latest = fake_nvml.wait_for(lambda latest: latest.reading(MIG, "graphics_active_fraction").value is not None)
    (instance,) = (device for device in latest.inventory.devices if device.mig_parent == B)
    assert (instance.mig_profile, instance.mig_instance) == ("3g.40gb", (3, 0))
    names = ("multiprocessors", "mig_compute_slices", "mig_first_slice", "mig_memory_slices")
    assert [instance.fact(name) for name in names] == [60, 3, 4, 4]
    assert latest.reading(MIG, "utilization_fraction").cause is Cause.MIG
    assert latest.reading(MIG, "graphics_active_fraction").value == 0.8
    report = {device["uuid"]: device for device in state_report(latest)["devices"]}
    assert (report[MIG]["mig_profile"], report[B]["sharing"], report[A]["sharing"]) == ("3g.40gb", "mig", None)


def test_where_an_instance_lies_is_told_to_administrators_and_its_size_names_it_otherwise(fake_nvml):
    changes = {"1:0.name": "NVIDIA H100", "1:0.gpu_slices": 1, "1:0.megabytes": 9856}
    fake_nvml.say(card(0, A), _mig_card(**changes, **{"1.error.nvmlDeviceGetGpuInstanceById": 4}))
    with fake_nvml.supervisor():
        latest = fake_nvml.wait_for(lambda latest: MIG in states_of(latest))
    (instance,) = (device for device in latest.inventory.devices if device.mig_parent == B)
    assert instance.mig_profile == "1g.10gb"
    assert instance.facts["mig_first_slice"].cause is Cause.NO_PERMISSION


def test_video_engines_are_told_by_process(fake_nvml):
    fake_nvml.say({**card(0, A), "0.process.compute": f"{os.getpid()}:4096", "0.usage": f"{os.getpid()}:5:50:20:30:10"})
    with fake_nvml.supervisor():
        latest = fake_nvml.wait_for(lambda latest: any(each.encoder_fraction.value for each in latest.processes))
    (process,) = latest.processes
    shares = {name: reading.value for name, reading in process.quantities.items()}
    assert shares == {
        "memory_bytes": 4096,
        "sm_fraction": 0.5,
        "memory_controller_fraction": 0.2,
        "encoder_fraction": 0.3,
        "decoder_fraction": 0.1,
    }


def test_cards_without_links_or_a_fabric_have_none(fake_nvml):
    fake_nvml.say(
        card(0, A, fabric=0, **{"field__91": 0}),
        card(1, B, **{"field__91": 2, "error__nvmlDeviceGetGpuFabricInfoV": 13}),
    )
    with fake_nvml.supervisor():
        latest = fake_nvml.wait_for(lambda latest: all(latest.reading(uuid, "pcie_width").value for uuid in (A, B)))
    names = ("nvlink_active_links", "fabric_state")
    assert [latest.reading(A, name).cause for name in names] == [Cause.NOT_SUPPORTED] * 2
    # Links that say nothing of themselves are not active.
    assert latest.reading(B, "nvlink_active_links").value == 0
    assert latest.reading(B, "fabric_state").cause is Cause.MISSING_SYMBOL
