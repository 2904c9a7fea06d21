"""Processes on the cards as table rows."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from planner.monitor.readings.inventory import Device
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.reading import Reading
from planner.monitor.readings.sample import CardProcess
from planner.present import format as fmt
from planner.present.columns import Column, number_column, text_column
from planner.present.monitor.events import elapsed_text
from planner.present.monitor.readings import NO_VALUE, card_label, missing_reason_text
from planner.units import GIB

_HOST_UNKNOWN: Final = "this machine has no process with this PID"


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """Table row of one process on one card; `at_seconds` is the time of the reading in seconds since 1970."""

    process: CardProcess
    device: Device
    at_seconds: float | None = None


def process_rows(latest: Latest) -> tuple[ProcessRow, ...]:
    """Return the table rows of all processes, sorted by card, then by memory in descending order."""
    devices = {device.uuid: device for device in latest.inventory.devices}
    order = {uuid: position for position, uuid in enumerate(devices)}
    known = (process for process in latest.processes if process.uuid in devices)
    rows = [ProcessRow(process, devices[process.uuid], latest.wall_seconds) for process in known]
    return tuple(sorted(rows, key=lambda row: (order[row.process.uuid], -(row.process.memory_bytes.value or 0))))


def process_command(row: ProcessRow) -> str:
    """Return the command line of a process, or in parentheses why the command line is not known."""
    host = row.process.host
    if not row.process.is_reliable:
        return "(implausible data from the driver)"
    return "(not visible here)" if host is None else host.command or host.name


PROCESS_COLUMNS: tuple[Column[ProcessRow], ...] = (
    text_column("card", "GPU", lambda row: card_label(row.device), about="GPU on which the process runs"),
    Column(
        "pid",
        "Process",
        lambda row: row.process.pid,
        lambda row: str(row.process.pid),
        align="right",
        help="Process ID (PID)",
    ),
    text_column(
        "user",
        "User",
        lambda row: row.process.host.user if row.process.host else None,
        unknown=NO_VALUE,
        about="User who started the process",
    ),
    text_column("kind", "Kind", lambda row: row.process.kind, about="Compute, graphics or both"),
    number_column(
        "memory",
        "Memory",
        lambda row: row.process.memory_bytes.value,
        unit="GiB",
        per_unit=GIB,
        show=fmt.significant,
        unknown=NO_VALUE,
        about="GPU memory that the process holds",
    ),
    number_column(
        "sm",
        "SM",
        lambda row: row.process.sm_fraction.value,
        unit="%",
        per_unit=0.01,
        unknown=NO_VALUE,
        about="Share of time in which it runs kernels",
    ),
    number_column(
        "cpu",
        "CPU",
        lambda row: row.process.host.cpu_fraction if row.process.host else None,
        unit="%",
        per_unit=0.01,
        show=lambda value: f"{value:.0f}",
        unknown=NO_VALUE,
        about="CPU load of the process; 100 % is one core",
    ),
    text_column("command", "Command", process_command, about="Program and its arguments"),
)
"""Columns of the process table on the command line."""


def process_row_id(row: ProcessRow) -> str:
    """Return a unique id of a row: card UUID, PID and kind of process."""
    return f"{row.process.uuid} {row.process.pid} {row.process.kind}"


def process_runtime_seconds(row: ProcessRow) -> float | None:
    """Return how long a process has been running in seconds, None if its start is not known."""
    host = row.process.host
    return None if host is None or row.at_seconds is None else max(0.0, row.at_seconds - host.started_seconds)


def matching_process_ids(rows: Sequence[ProcessRow], text: str, *, only_own: bool) -> Collection[str]:
    """Return the row ids of processes that match every word in `text`; with `only_own` only this user's processes."""
    words = text.casefold().split()
    return {
        process_row_id(row)
        for row in rows
        if all(word in _searchable_text(row) for word in words)
        and not (only_own and (row.process.host is None or not row.process.host.is_own))
    }


def _searchable_text(row: ProcessRow) -> str:
    user = "" if row.process.host is None else row.process.host.user
    parts = (str(row.process.pid), user, f"GPU {row.device.index}", row.process.kind, process_command(row))
    return " ".join(parts).casefold()


def _reading_column(
    key: str, title: str, get: Callable[[ProcessRow], Reading], unit: str, per_unit: float, about: str
) -> Column[ProcessRow]:
    return number_column(
        key,
        title,
        lambda row: get(row).value,
        unit=unit,
        per_unit=per_unit,
        show=_gib_text if unit == "GiB" else lambda value: f"{value:.0f}",
        unknown=NO_VALUE,
        width=8,
        tooltip=lambda row: missing_reason_text(get(row)) or _exact_bytes_text(get(row), unit),
        about=about,
    )


def _gib_text(size: float) -> str:
    """Return a number of GiB with three significant figures, but at most two decimals."""
    return fmt.significant(size) if size >= 1 else f"{size:.2f}"


def _exact_bytes_text(reading: Reading, unit: str) -> str:
    return fmt.exact_bytes(int(reading.value)) if reading.value is not None and unit == "GiB" else ""


def _runtime_text(row: ProcessRow) -> str:
    seconds = process_runtime_seconds(row)
    return NO_VALUE if seconds is None else elapsed_text(seconds)


_COLUMNS_BY_KEY: Final = {column.key: column for column in PROCESS_COLUMNS}

DETAILED_PROCESS_COLUMNS: Final[tuple[Column[ProcessRow], ...]] = (
    replace(_COLUMNS_BY_KEY["pid"], width=8),
    Column(
        "card",
        "GPU",
        lambda row: row.device.index,
        lambda row: card_label(row.device).strip(),
        width=6,
        help="GPU on which the process runs",
    ),
    replace(_COLUMNS_BY_KEY["user"], width=9),
    _reading_column(
        "memory",
        "GPU memory",
        lambda row: row.process.memory_bytes,
        "GiB",
        GIB,
        about="GPU memory that the process holds",
    ),
    _reading_column(
        "sm",
        "SM",
        lambda row: row.process.sm_fraction,
        "%",
        0.01,
        about="Share of time in which it runs kernels",
    ),
    _reading_column(
        "controller",
        "Mem. controller",
        lambda row: row.process.memory_controller_fraction,
        "%",
        0.01,
        about="Share of time in which the process reads or writes GPU memory",
    ),
    replace(_COLUMNS_BY_KEY["cpu"], width=7, tooltip=lambda row: "of one core" if row.process.host else _HOST_UNKNOWN),
    number_column(
        "ram",
        "RAM",
        lambda row: row.process.host.memory_bytes if row.process.host else None,
        unit="GiB",
        per_unit=GIB,
        show=_gib_text,
        unknown=NO_VALUE,
        width=8,
        tooltip=lambda row: fmt.exact_bytes(row.process.host.memory_bytes) if row.process.host else _HOST_UNKNOWN,
        about="RAM that the process holds",
    ),
    Column(
        "runtime",
        "Runtime",
        process_runtime_seconds,
        _runtime_text,
        align="right",
        width=11,
        help="Time since the process started",
    ),
    replace(_COLUMNS_BY_KEY["kind"], width=9),
    replace(_COLUMNS_BY_KEY["command"], width=30, tooltip=process_command),
)
"""Columns of the process table in the window."""
