"""The processes of the cards as a table: every cell, what is searched, and what is not known."""

from planner.monitor.readings.inventory import Device
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import CardProcess, HostProcess
from planner.present.monitor.processes import (
    DETAILED_PROCESS_COLUMNS,
    ProcessRow,
    filter_processes,
    process_name,
    runtime_seconds,
)
from planner.units import GIB

CARD = Device("GPU-a", "NVIDIA A", 1)
HOST = HostProcess("python", "ada", "python train.py", 1000.0, 1.5, 2 * GIB, is_own=True)
KNOWN = ProcessRow(
    CardProcess(7, "GPU-a", "compute", Reading(4.0 * GIB), Reading(0.5), Reading(0.09), HOST), CARD, 1125.0
)
UNKNOWN = ProcessRow(CardProcess(8, "GPU-a", "graphics", missing(Cause.HIDDEN)), CARD)


def texts(row):
    return {column.key: column.text(row) for column in DETAILED_PROCESS_COLUMNS}


def tooltips(row):
    return {column.key: column.tooltip(row) for column in DETAILED_PROCESS_COLUMNS if column.tooltip is not None}


def test_a_process_in_full():
    assert texts(KNOWN) == {
        "pid": "7",
        "card": "1",
        "user": "ada",
        "memory": "4.00",
        "sm": "50",
        "controller": "9",
        "cpu": "150",
        "ram": "2.00",
        "runtime": "2 min 5 s",
        "kind": "compute",
        "command": "python train.py",
    }
    said = tooltips(KNOWN)
    assert said["memory"] == "4,294,967,296\u2009B"
    assert said["sm"] == ""
    assert said["cpu"] == "of one core"
    assert said["ram"] == "2,147,483,648\u2009B"
    assert said["command"] == "python train.py"


def test_what_is_not_known_of_a_process_is_a_dash_with_its_reason():
    shown = texts(UNKNOWN)
    unknown = ("user", "memory", "sm", "controller", "cpu", "ram", "runtime")
    assert {shown[key] for key in unknown} == {"–"}
    assert shown["command"] == "(not visible here)"
    said = tooltips(UNKNOWN)
    assert said["memory"] == "hidden by the operating system or the container"
    assert said["sm"] == "needs a second reading"
    assert said["cpu"] == said["ram"] == "this machine has no process with this id"
    values = {column.key: column.value(UNKNOWN) for column in DETAILED_PROCESS_COLUMNS}
    assert values["runtime"] is values["ram"] is values["cpu"] is None


def test_a_process_is_found_by_every_word_that_is_shown_of_it():
    rows = (KNOWN, UNKNOWN)
    assert filter_processes(rows, "", only_own=False) == {process_name(KNOWN), process_name(UNKNOWN)}
    assert filter_processes(rows, "ADA train", only_own=False) == {process_name(KNOWN)}
    assert filter_processes(rows, "card 1 graphics", only_own=False) == {process_name(UNKNOWN)}
    assert filter_processes(rows, "nobody", only_own=False) == set()
    other = ProcessRow(CardProcess(9, "GPU-a", "compute", Reading(1), host=HOST._replace(is_own=False)), CARD)
    assert filter_processes((*rows, other), "", only_own=True) == {process_name(KNOWN)}


def test_a_clock_that_was_set_back_makes_no_negative_runtime():
    assert runtime_seconds(ProcessRow(KNOWN.process, CARD, 900.0)) == 0.0
