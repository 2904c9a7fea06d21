"""Processes on the cards as table rows: cells, tooltips and search."""

from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import CardProcess, HostProcess, Sample
from planner.present.monitor.processes import (
    DETAILED_PROCESS_COLUMNS,
    PROCESS_COLUMNS,
    ProcessRow,
    matching_process_ids,
    process_row_id,
    process_rows,
    process_runtime_seconds,
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


def test_every_cell_and_tooltip_of_a_process():
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


def test_an_unknown_cell_is_a_dash_with_its_cause_as_tooltip():
    shown = texts(UNKNOWN)
    unknown = ("user", "memory", "sm", "controller", "cpu", "ram", "runtime")
    assert {shown[key] for key in unknown} == {"–"}
    assert shown["command"] == "(not visible here)"
    said = tooltips(UNKNOWN)
    assert said["memory"] == "hidden by the operating system or the container"
    assert said["sm"] == "needs a second reading"
    assert said["cpu"] == said["ram"] == "this machine has no process with this PID"
    values = {column.key: column.value(UNKNOWN) for column in DETAILED_PROCESS_COLUMNS}
    assert values["runtime"] is values["ram"] is values["cpu"] is None


def test_the_search_matches_every_word_in_the_shown_cells():
    rows = (KNOWN, UNKNOWN)
    assert matching_process_ids(rows, "", only_own=False) == {process_row_id(KNOWN), process_row_id(UNKNOWN)}
    assert matching_process_ids(rows, "ADA train", only_own=False) == {process_row_id(KNOWN)}
    assert matching_process_ids(rows, "GPU 1 graphics", only_own=False) == {process_row_id(UNKNOWN)}
    assert matching_process_ids(rows, "nobody", only_own=False) == set()
    other = ProcessRow(CardProcess(9, "GPU-a", "compute", Reading(1), host=HOST._replace(is_own=False)), CARD)
    assert matching_process_ids((*rows, other), "", only_own=True) == {process_row_id(KNOWN)}


def test_a_clock_set_back_gives_no_negative_runtime():
    assert process_runtime_seconds(ProcessRow(KNOWN.process, CARD, 900.0)) == 0.0


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


def test_processes_are_sorted_by_card_and_memory():
    host = HostProcess("python", "me", "python train.py", 0.0, 1.5, GIB, is_own=True)
    processes = (
        CardProcess(1, A, "compute", Reading(GIB), Reading(0.4), host=host),
        CardProcess(2, A, "graphics", Reading(3 * GIB), host=host._replace(command="")),
        CardProcess(3, A, "compute", missing(Cause.HIDDEN)),
        CardProcess(4, A, "compute", Reading(1), is_reliable=False),
        CardProcess(5, "GPU-other", "compute", Reading(1)),
    )
    rows = process_rows(latest_state(processes=processes))
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
