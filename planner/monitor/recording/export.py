"""Export of recordings as tables, CSV or Parquet: one row per sample for each GPU and the host.

The columns are `time` (UTC), `seconds` since the first sample, `owner` (the GPU's UUID, or `host`), its `index` and
`name`, then every quantity by its name and in its unit from `metrics`. Unread and unknown values are empty; the last
column names the implausible values in the row.

Parquet adds metadata: unit and title of each column, and under the key `gpu-planner`, as JSON, the program that wrote
the recording, its start, data loss, notes and marks.
"""

import csv
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

from planner.errors import RecordingError
from planner.installation import extra_command
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.metrics import DEVICE_METRICS, HOST_METRICS
from planner.monitor.readings.reading import Reading
from planner.monitor.readings.sample import Readings, Sample
from planner.monitor.recording.files import unwritable_error
from planner.monitor.recording.recording import MonitorRecording
from planner.storage import UNFINISHED_SUFFIX

_HOST: Final = "host"
_METRICS: Final = {metric.name: metric for metric in (*HOST_METRICS, *DEVICE_METRICS)}
_QUANTITIES: Final = tuple(dict.fromkeys(metric.name for metric in (*DEVICE_METRICS, *HOST_METRICS)))
# Bit fields are exported as integers.
_BIT_FIELDS: Final = frozenset(name for name, metric in _METRICS.items() if metric.unit == "bits")
_MAX_BITS: Final = 2**63
COLUMNS: Final = ("time", "seconds", "owner", "index", "name", *_QUANTITIES, "implausible")
"""The columns of every table."""
# Number of rows in memory at a time.
_ROWS_A_GROUP: Final = 20_000


class Row(NamedTuple):
    """One row of the table, with `quantities` in the order of the columns."""

    time: datetime
    seconds: float
    owner: str
    number: int | None
    name: str | None
    quantities: tuple[float | None, ...]
    implausible: str

    @property
    def cells(self) -> tuple[object, ...]:
        """Return the cells of the row in the order of the columns."""
        return *self[:5], *self.quantities, self.implausible


def export(recording: MonitorRecording, path: Path) -> int:
    """Export a recording as CSV or Parquet, by the suffix of `path`; return the number of rows.

    Raises:
        RecordingError: If the suffix is neither, the file cannot be written, or pyarrow is not installed.
    """
    if path.suffix.lower() == ".parquet":
        return export_parquet(recording, path)
    if path.suffix.lower() == ".csv":
        return export_csv(recording, path)
    raise RecordingError(path, "has neither suffix .csv nor .parquet", "Choose one of these suffixes.")


def export_csv(recording: MonitorRecording, path: Path) -> int:
    """Write a recording as CSV, UTF-8 with a header; return the number of rows.

    Raises:
        RecordingError: If the file cannot be written.
    """
    count = 0
    with (
        _temporary_file(path) as part,
        part.open("w", encoding="utf-8", errors="backslashreplace", newline="") as stream,
    ):
        writer = csv.writer(stream)
        writer.writerow(COLUMNS)
        for row in table_rows(recording):
            writer.writerow([row.time.isoformat(timespec="milliseconds"), *map(_csv_cell, row.cells[1:])])
            count += 1
    return count


def export_parquet(recording: MonitorRecording, path: Path) -> int:
    """Write a recording as Parquet; return the number of rows.

    Raises:
        RecordingError: If pyarrow is not installed, or the file cannot be written.
    """
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        hint = f"Export to a file that ends in .csv, or run: {extra_command('parquet')}"
        raise RecordingError(path, "Parquet needs the package pyarrow", hint) from error
    schema, count = _schema(arrow, recording), 0
    pending_rows = table_rows(recording)
    with _temporary_file(path) as part, parquet.ParquetWriter(str(part), schema) as writer:
        while group := list(islice(pending_rows, _ROWS_A_GROUP)):
            columns = dict(zip(COLUMNS, map(list, zip(*(row.cells for row in group), strict=True)), strict=True))
            writer.write_table(arrow.Table.from_pydict(columns, schema=schema))
            count += len(group)
    return count


def table_rows(recording: MonitorRecording) -> Iterator[Row]:
    """Yield the rows of the exported table."""
    devices: dict[str, Device] = {}
    for update in recording:
        if isinstance(update, Inventory):
            devices = {device.uuid: device for device in update.devices}
            continue
        if update.host:
            yield _table_row(update, recording.start, _HOST, None, update.host)
        for uuid, readings in update.devices.items():
            yield _table_row(update, recording.start, uuid, devices.get(uuid), readings)


def _table_row(sample: Sample, start: float, owner: str, device: Device | None, readings: Readings) -> Row:
    return Row(
        utc_time(sample.wall_seconds),
        round(sample.monotonic_seconds - start, 6),
        owner,
        None if device is None else device.index,
        None if device is None else device.name,
        tuple(_table_value(name, readings.get(name)) for name in _QUANTITIES),
        " ".join(name for name, reading in readings.items() if reading.is_implausible),
    )


def _table_value(name: str, reading: Reading | None) -> float | None:
    if reading is None or reading.value is None:
        return None
    if name in _BIT_FIELDS:
        return int(reading.value) if 0 <= reading.value < _MAX_BITS else None
    # A float column in Parquet rejects large integers.
    return float(reading.value)


def utc_time(wall_seconds: float) -> datetime:
    """Return a time in seconds since 1970 as a date."""
    return datetime.fromtimestamp(wall_seconds, UTC)


def _csv_cell(cell: object) -> object:
    # Spreadsheets would evaluate such text as a formula.
    if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        return f"'{cell}"
    return int(cell) if isinstance(cell, float) and cell.is_integer() else cell


def _schema(arrow: ModuleType, recording: MonitorRecording) -> object:
    texts = dict.fromkeys(("owner", "name", "implausible"), arrow.string())
    whole = dict.fromkeys(_BIT_FIELDS, arrow.int64())
    special = {"time": arrow.timestamp("us", tz="UTC"), "index": arrow.int32(), **texts, **whole}
    fields = [
        arrow.field(name, special.get(name, arrow.float64()), metadata=_column_metadata(name)) for name in COLUMNS
    ]
    return arrow.schema(fields, metadata={"gpu-planner": json.dumps(_recording_metadata(recording))})


def _column_metadata(name: str) -> dict[str, str] | None:
    if name == "seconds":
        return {"unit": "s", "title": "Time since the first sample"}
    metric = _METRICS.get(name)
    return None if metric is None else {"unit": metric.unit, "title": metric.title}


def _recording_metadata(recording: MonitorRecording) -> dict[str, Any]:
    return {
        "program": recording.header.program,
        "recording": recording.path.name,
        "began": None if recording.first is None else utc_time(recording.first.wall_seconds).isoformat(),
        "seconds": recording.seconds,
        "loss": recording.loss._asdict(),
        "notes": list(recording.notes),
        "marks": [mark._asdict() for mark in recording.marks],
    }


@contextmanager
def _temporary_file(path: Path) -> Iterator[Path]:
    """Provide a temporary file in the folder of `path`, which replaces `path` once complete."""
    part = path.with_name(f"{path.name}{UNFINISHED_SUFFIX}")
    try:
        yield part
        os.replace(part, path)
    except OSError as error:
        raise unwritable_error(path, error) from error
    finally:
        part.unlink(missing_ok=True)
