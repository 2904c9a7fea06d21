"""Tables for other programs: every reading in its column, what is not known empty."""

import csv
import sys
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from recording_kit import WALL, A, recording, sample

from planner.errors import RecordingError
from planner.monitor.device import Device
from planner.monitor.inventory import Inventory
from planner.monitor.reading import Cause, Reading, missing
from planner.monitor.recording.export import COLUMNS, export
from planner.monitor.sample import Sample

FOUND = recording(
    sample(
        10.0, {"cpu_fraction": 0.25}, a={"power_watts": 100.5, "temperature_celsius": 60.0}, b={"power_watts": 50.0}
    ),
    Sample(
        11.5, WALL + 11.5, {A: {"power_watts": Reading(1e6, is_implausible=True), "fan_fraction": missing(Cause.LOST)}}
    ),
)


def read_back(path):
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_csv_has_a_row_for_each_card_and_the_machine(tmp_path):
    path = tmp_path / "run.csv"
    assert export(FOUND, path) == 4
    host, first, second, odd = read_back(path)
    assert tuple(host) == COLUMNS
    assert (host["owner"], host["cpu_fraction"], host["index"], host["power_watts"]) == ("host", "0.25", "", "")
    assert (first["owner"], first["index"], first["name"]) == (A, "0", "NVIDIA Test 0")
    assert (first["power_watts"], first["temperature_celsius"], first["implausible"]) == ("100.5", "60", "")
    assert (first["time"], first["seconds"]) == ("2023-11-14T22:13:30.000+00:00", "0")
    assert second["index"] == "1"
    assert (odd["power_watts"], odd["fan_fraction"], odd["implausible"]) == ("1000000", "", "power_watts")
    assert odd["seconds"] == "1.5"
    assert list(tmp_path.iterdir()) == [path]


def test_a_name_is_no_formula_and_a_clock_may_be_wrong(tmp_path):
    odd = Inventory(devices=(Device(A, "=HYPERLINK()", 0),))
    at = Sample(0.0, 1e20, {A: {"power_watts": Reading(1.0)}})
    export(recording(odd, at), tmp_path / "run.csv")
    (row,) = read_back(tmp_path / "run.csv")
    assert (row["name"], row["time"]) == ("'=HYPERLINK()", "1970-01-01T00:00:00.000+00:00")


def test_another_ending_is_refused(tmp_path):
    with pytest.raises(RecordingError, match=r"is neither \.csv nor \.parquet"):
        export(FOUND, tmp_path / "run.xlsx")


def test_a_folder_that_is_not_there_is_told(tmp_path):
    with pytest.raises(RecordingError, match="cannot be written"):
        export(FOUND, tmp_path / "missing" / "run.csv")


def test_without_pyarrow_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(RecordingError, match="needs the package pyarrow") as refused:
        export(FOUND, tmp_path / "run.parquet")
    assert 'pip install "gpu-planner[parquet]"' in refused.value.hint
    assert list(tmp_path.iterdir()) == []


class _Writer:
    """Takes tables as pyarrow's writer does, and keeps them."""

    def __init__(self, path, schema):
        self.path, self.schema = path, schema

    def __enter__(self):
        open(self.path, "wb").close()  # closed at once
        return self

    def __exit__(self, *_error):
        return None

    def write_table(self, table):
        _TABLES.append(table)


_TABLES = []


def test_what_pyarrow_is_given(tmp_path, monkeypatch):
    arrow = SimpleNamespace(
        timestamp=lambda unit, tz: (unit, tz),
        int32=lambda: "int32",
        string=lambda: "string",
        float64=lambda: "float64",
        schema=dict,
        Table=SimpleNamespace(from_pydict=lambda columns, schema: (columns, schema)),
    )
    monkeypatch.setitem(sys.modules, "pyarrow", arrow)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", SimpleNamespace(ParquetWriter=_Writer))
    _TABLES.clear()
    assert export(FOUND, tmp_path / "run.parquet") == 4
    ((columns, schema),) = _TABLES
    assert tuple(columns) == tuple(schema) == COLUMNS
    assert (schema["time"], schema["index"], schema["power_watts"]) == (("us", "UTC"), "int32", "float64")
    assert columns["power_watts"] == [None, 100.5, 50.0, 1e6]
    assert columns["time"][0] == datetime.fromtimestamp(WALL + 10, UTC)


def test_parquet_is_read_back(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    assert export(FOUND, tmp_path / "run.parquet") == 4
    table = parquet.read_table(tmp_path / "run.parquet")
    assert tuple(table.column_names) == COLUMNS
    assert table["power_watts"].to_pylist() == [None, 100.5, 50.0, 1e6]
    assert table["owner"].to_pylist()[1] == A
