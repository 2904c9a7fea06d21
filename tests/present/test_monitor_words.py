"""Cards, processes and the machine in words."""

import pytest

from planner.monitor.readings.faults import Fault, FaultKind
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import CardProcess, HostProcess, Sample
from planner.present.monitor.processes import PROCESS_COLUMNS, process_rows
from planner.present.monitor.readings import CARD_COLUMNS, card_rows, driver_line, fault_line, host_line
from planner.units import GIB

A = "GPU-a"


def standing(*, state="running", total=24 * GIB, processes=(), faults=(), host=None, **readings):
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


def test_a_card_in_full():
    latest = standing(
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


def test_what_is_not_known_is_a_dash_with_its_reason():
    latest = standing(total=None, fan_fraction=missing(Cause.NOT_SUPPORTED), power_watts=99.6)
    row, instance = card_rows(latest)
    shown = cells(row)
    assert (shown["fan"], shown["memory"], shown["power"], shown["state"]) == ("–", "–", "100", "–")
    tooltips = {column.key: column.tooltip(row) for column in CARD_COLUMNS if column.tooltip}
    assert tooltips["fan"] == "not reported by this GPU or driver"
    assert cells(instance)["number"] == " └ 0"
    assert cells(instance)["power"] == "–"
    assert cells(card_rows(standing())[0])["memory"] == "– / 24.0"


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
def test_what_a_card_does_in_a_word(readings, words):
    assert cells(card_rows(standing(**readings))[0])["state"] == words


def test_a_reading_that_is_known_has_no_reason_for_missing():
    row = card_rows(standing(fan_fraction=0.5))[0]
    assert next(column for column in CARD_COLUMNS if column.key == "fan").tooltip(row) == ""


def test_processes_are_listed_by_card_and_size():
    host = HostProcess("python", "me", "python train.py", 0.0, 1.5, GIB, is_own=True)
    processes = (
        CardProcess(1, A, "compute", Reading(GIB), Reading(0.4), host=host),
        CardProcess(2, A, "graphics", Reading(3 * GIB), host=host._replace(command="")),
        CardProcess(3, A, "compute", missing(Cause.HIDDEN)),
        CardProcess(4, A, "compute", Reading(1), is_reliable=False),
        CardProcess(5, "GPU-other", "compute", Reading(1)),
    )
    rows = process_rows(standing(processes=processes))
    shown = {row.process.pid: {column.key: column.text(row) for column in PROCESS_COLUMNS} for row in rows}
    assert [row.process.pid for row in rows] == [2, 1, 4, 3]
    assert shown[1] == {
        "card": "0",
        "pid": "1",
        "user": "me",
        "kind": "compute",
        "memory": "1.00",
        "sm": "40",
        "cpu": "150",
        "command": "python train.py",
    }
    assert shown[2]["command"] == "python"
    assert (shown[3]["memory"], shown[3]["cpu"], shown[3]["command"]) == ("–", "–", "(not visible here)")
    assert shown[4]["command"] == "(implausible data from the driver)"
    assert [column.value(rows[0]) for column in PROCESS_COLUMNS if column.key == "pid"] == [2]


def test_the_machine_in_a_line():
    host = {
        "cpu_fraction": 0.25,
        "io_wait_fraction": 0.1,
        "memory_used_bytes": 8 * GIB,
        "memory_available_bytes": 24 * GIB,
        "disk_read_bytes_per_s": 5e6,
        "disk_write_bytes_per_s": 1e6,
    }
    readings = {name: Reading(value) for name, value in host.items()}
    line = host_line(standing(host=readings)).replace("\u2009", " ")
    assert line == "CPU 25 % · I/O wait 10 % · RAM 8.00 GiB of 32.0 GiB · disk 5.0 / 1.0 MB/s"
    assert host_line(Latest()) == ""


def test_faults_and_drivers_in_a_line():
    fault = Fault(FaultKind.LOST, 0.0, A, "seen by nvmlX")
    latest = standing(faults=(fault,))
    assert fault_line(fault, latest) == "card 0: the card no longer responds (seen by nvmlX)"
    assert fault_line(Fault(FaultKind.NO_DRIVER, 0.0), latest) == "the NVIDIA driver is not loaded"
    assert driver_line(latest) == "driver 580"
    assert driver_line(Latest()) == "no driver"
