"""Readings of cards and of this machine as text, setup checks, and the cost of monitoring."""

import pytest

from planner.monitor.doctor import SetupCheck
from planner.monitor.readings.faults import Fault, FaultKind
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import Sample, SamplingCost
from planner.present.monitor.readings import (
    BARRED_CARD_COLUMNS,
    CARD_COLUMNS,
    bar_text,
    card_rows,
    card_state,
    driver_line,
    fault_line,
    host_line,
    monitoring_cost_text,
    setup_check_text,
)
from planner.units import GIB

A = "GPU-a"


def latest_state(*, state="running", total=24 * GIB, processes=(), faults=(), host=None, **readings):
    latest = Latest()
    facts = {} if total is None else {"memory_total_bytes": Reading(total)}
    instance = Device("MIG-1", "1g.10gb", 0, mig_parent=A)
    latest.note_inventory(
        Inventory("580", "13", "", (Device(A, "NVIDIA A", 0, state=state, facts=facts), instance), faults)
    )
    values = {name: value if isinstance(value, Reading) else Reading(value) for name, value in readings.items()}
    latest.note_sample(Sample(0.0, 0.0, {A: values}, host or {}, processes=processes))
    return latest


def cells(row):
    return {column.key: column.text(row) for column in CARD_COLUMNS}


def test_every_cell_of_a_card():
    latest = latest_state(
        utilization_fraction=0.97,
        memory_used_bytes=17.4 * GIB,
        memory_controller_fraction=0.4,
        power_watts=312.4,
        power_limit_watts=350.0,
        temperature_celsius=64,
        sm_clock_mhz=2520,
        fan_fraction=0.35,
        clock_reasons=0,
    )
    assert cells(card_rows(latest)[0]) == {
        "number": "0",
        "name": "NVIDIA A",
        "utilization": "97",
        "memory": "17.4 / 24.0",
        "controller": "40",
        "power": "312 / 350",
        "temperature": "64",
        "clock": "2520",
        "fan": "35",
        "state": "busy",
    }


def test_an_unknown_reading_is_a_dash_with_its_cause_as_tooltip():
    latest = latest_state(total=None, fan_fraction=missing(Cause.NOT_SUPPORTED), power_watts=99.6)
    row, instance = card_rows(latest)
    shown = cells(row)
    assert (shown["fan"], shown["memory"], shown["power"], shown["state"]) == ("–", "–", "100", "–")
    tooltips = {column.key: column.tooltip(row) for column in CARD_COLUMNS if column.tooltip}
    assert tooltips["fan"] == "not reported by this driver"
    assert cells(instance)["number"] == " └ 0"
    assert cells(instance)["power"] == "–"
    assert cells(card_rows(latest_state())[0])["memory"] == "– / 24.0"


@pytest.mark.parametrize(
    ("readings", "words"),
    [
        ({"utilization_fraction": 0.0, "clock_reasons": 5}, "idle"),
        ({"utilization_fraction": 0.9, "clock_reasons": 4}, "power limit"),
        ({"utilization_fraction": Reading(40.0, is_implausible=True)}, "implausible reading"),
        ({"utilization_fraction": 0.1, "fan_fraction": 0}, "busy"),
        ({"utilization_fraction": missing(Cause.NO_ANSWER)}, "no answer"),
        ({"utilization_fraction": missing(Cause.RELEASED)}, "disconnected"),
        ({"state": "lost"}, "lost"),
        ({"state": "asleep"}, "asleep"),
    ],
)
def test_the_state_of_a_card_in_a_word(readings, words):
    assert cells(card_rows(latest_state(**readings))[0])["state"] == words


def test_a_known_reading_has_no_tooltip():
    row = card_rows(latest_state(fan_fraction=0.5))[0]
    assert next(column for column in CARD_COLUMNS if column.key == "fan").tooltip(row) == ""


def test_the_use_of_the_host_in_one_line():
    host = {
        "cpu_fraction": 0.25,
        "io_wait_fraction": 0.1,
        "memory_used_bytes": 8 * GIB,
        "memory_available_bytes": 24 * GIB,
        "disk_read_bytes_per_s": 5e6,
        "disk_write_bytes_per_s": 1e6,
    }
    readings = {name: Reading(value) for name, value in host.items()}
    line = host_line(latest_state(host=readings)).replace("\u2009", " ")
    assert line == "CPU 25 % · I/O wait 10 % · RAM 8.00 GiB of 32.0 GiB · disk 5.0 / 1.0 MB/s"
    assert host_line(Latest()) == ""


def test_faults_and_driver_versions_in_one_line():
    fault = Fault(FaultKind.LOST, 0.0, A, "seen by nvmlX")
    latest = latest_state(faults=(fault,))
    assert fault_line(fault, latest) == "GPU 0 no longer responds (seen by nvmlX)"
    assert fault_line(Fault(FaultKind.DRIVER_RESET, 0.0, A), latest) == "GPU 0: the driver was reset or replaced"
    assert fault_line(Fault(FaultKind.NO_DRIVER, 0.0), latest) == "the NVIDIA driver is not loaded"
    assert driver_line(latest.inventory) == "driver 580"
    assert driver_line(Latest().inventory) == "no driver"
    assert driver_line(Inventory(faults=(Fault(FaultKind.UNREACHABLE, 1.0),))) == ""
    others = (Device("AMD-1", "r", 1, driver="amdgpu, amd-smi"), Device("AMD-2", "s", 2, driver="amdgpu"))
    assert driver_line(Inventory(devices=others)) == "driver amdgpu, amd-smi"
    assert driver_line(Inventory("580", cuda_version="13.0", devices=others)) == (
        "driver 580 · CUDA 13.0 · amdgpu · amd-smi"
    )


def test_in_mig_mode_the_active_time_of_the_engine_stands_in_for_utilization():
    hidden = {"utilization_fraction": missing(Cause.MIG)}
    latest = latest_state(**hidden, graphics_active_fraction=Reading(0.4))
    row = card_rows(latest)[0]
    assert (row.use, card_state(row)) == (Reading(0.4), "busy")
    row = card_rows(latest_state(**hidden))[0]
    assert row.use == missing(Cause.MIG)


def test_setup_checks_have_a_sign_and_their_advice():
    checks = (SetupCheck("Driver", "fails", "does not answer", "Reboot."), SetupCheck("PCI", "works", "0000:01:00.0"))
    assert setup_check_text(checks) == "✗ Driver: does not answer\n    Reboot.\n✓ PCI: 0000:01:00.0"


def test_equal_setup_checks_are_combined():
    checks = [SetupCheck(f"GPU {number} H100", "works", "19 of 42 quantities") for number in range(8)]
    assert setup_check_text(checks) == "✓ GPU 0 H100 and 7 more: 19 of 42 quantities"


def test_the_cost_of_monitoring_as_far_as_it_is_known():
    assert monitoring_cost_text(None, None) == ""
    cost = SamplingCost(0.0021, 46, 0.001, 1, 0.0024, 20 << 20)
    said = monitoring_cost_text(cost, 0.012).replace("\u2009", " ")
    assert said == "monitoring: 2.1 ms per reading, sampler 0.24 % of a core, window 1.2 %"


def test_a_bar_fills_in_steps_of_an_eighth_and_is_empty_without_a_reading():
    assert bar_text(None) == ""
    assert bar_text(0.0) == " " * 10
    assert bar_text(0.5) == "█████     "
    assert bar_text(0.5125) == "█████▏    "
    assert bar_text(1.2) == "█" * 10


def test_the_table_for_a_terminal_has_short_names_and_bars():
    latest = Latest()
    facts = {"memory_total_bytes": Reading(24.0 * GIB)}
    latest.note_inventory(Inventory("580", devices=(Device(A, "NVIDIA GeForce RTX 4090", 0, facts=facts),)))
    latest.note_sample(Sample(0.0, 0.0, {A: {"memory_used_bytes": Reading(12.0 * GIB)}}))
    (row,) = card_rows(latest)
    texts = {column.key: column.text(row) for column in BARRED_CARD_COLUMNS}
    assert (texts["name"], texts["memory_bar"], texts["use_bar"]) == ("RTX 4090", "█████     ", "")
