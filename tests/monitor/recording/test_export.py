"""Export as CSV and Parquet: a column for each quantity, empty if unknown."""

import csv
import json
import sys
from datetime import UTC, datetime

import pytest
from pyarrow import parquet
from recording_kit import WALL, A, B, recording, sample

from planner.errors import RecordingError
from planner.installation import extra_command
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import Sample
from planner.monitor.recording.export import COLUMNS, export
from planner.monitor.recording.records import RecordedMark

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


def test_csv_has_a_row_for_each_card_and_the_host(tmp_path):
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


def test_names_are_no_formulas(tmp_path):
    odd = Inventory(devices=(Device(A, "=HYPERLINK()", 0),))
    at = Sample(0.0, 0.0, {A: {"power_watts": Reading(1.0)}})
    export(recording(odd, at), tmp_path / "run.csv")
    (row,) = read_back(tmp_path / "run.csv")
    assert (row["name"], row["time"]) == ("'=HYPERLINK()", "1970-01-01T00:00:00.000+00:00")


def test_an_unknown_suffix_is_an_error(tmp_path):
    with pytest.raises(RecordingError, match=r"has neither suffix"):
        export(FOUND, tmp_path / "run.xlsx")


def test_a_missing_folder_is_an_export_error(tmp_path):
    with pytest.raises(RecordingError, match="cannot be written"):
        export(FOUND, tmp_path / "missing" / "run.csv")


def test_without_pyarrow_the_error_names_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(RecordingError, match="needs the package pyarrow") as refused:
        export(FOUND, tmp_path / "run.parquet")
    assert extra_command("parquet") in refused.value.hint
    assert list(tmp_path.iterdir()) == []


def test_parquet_is_read_back(tmp_path):
    path = tmp_path / "run.parquet"
    assert export(FOUND, path) == 4
    assert list(tmp_path.iterdir()) == [path]
    table = parquet.read_table(path)
    assert tuple(table.column_names) == COLUMNS
    assert table["power_watts"].to_pylist() == [None, 100.5, 50.0, 1e6]
    assert table["owner"].to_pylist() == ["host", A, B, A]
    assert table["index"].to_pylist() == [None, 0, 1, 0]
    assert table["time"].to_pylist()[0] == datetime.fromtimestamp(WALL + 10, UTC)
    assert table["seconds"].to_pylist() == [0.0, 0.0, 0.0, 1.5]
    assert table["fan_fraction"].null_count == 4, "what is not known is empty, whatever the cause"
    assert table["implausible"].to_pylist() == ["", "", "", "power_watts"]


def test_the_columns_of_parquet_have_their_types_and_units(tmp_path):
    export(FOUND, tmp_path / "run.parquet")
    schema = parquet.read_schema(tmp_path / "run.parquet")
    types = {field.name: str(field.type) for field in schema}
    named = {"time": "timestamp[us, tz=UTC]", "owner": "string", "index": "int32", "name": "string"}
    assert {name: types.pop(name) for name in named} == named
    assert (types.pop("implausible"), types.pop("clock_reasons")) == ("string", "int64")
    assert set(types.values()) == {"double"}
    assert schema.field("power_watts").metadata == {b"unit": b"W", b"title": b"Power"}
    assert schema.field("memory_used_bytes").metadata == {b"unit": b"bytes", b"title": b"Memory used"}
    assert schema.field("seconds").metadata[b"unit"] == b"s"
    assert schema.field("owner").metadata is None


def test_parquet_metadata_describes_the_recording(tmp_path):
    found = recording(sample(10.0), RecordedMark(10.0, WALL + 10.0, "epoch 2"), sample(12.0), is_ended=False)
    export(found, tmp_path / "run.parquet")
    about = json.loads(parquet.read_schema(tmp_path / "run.parquet").metadata[b"gpu-planner"])
    assert (about["program"], about["recording"], about["seconds"]) == ("a test", "a test", 2.0)
    assert (about["began"], about["loss"]["is_cut"]) == ("2023-11-14T22:13:30+00:00", True)
    assert [mark["text"] for mark in about["marks"]] == ["epoch 2"]


def test_parquet_of_many_row_groups_and_of_an_empty_recording(tmp_path, monkeypatch):
    monkeypatch.setattr("planner.monitor.recording.export._ROWS_A_GROUP", 2)
    assert export(FOUND, tmp_path / "run.parquet") == 4
    assert parquet.ParquetFile(tmp_path / "run.parquet").metadata.num_row_groups == 2
    assert export(recording(), tmp_path / "nothing.parquet") == 0
    assert parquet.read_table(tmp_path / "nothing.parquet").num_rows == 0


def test_clock_reasons_stay_bits_and_invalid_bits_are_left_out(tmp_path):
    odd = (sample(float(at), a={"clock_reasons": bits}) for at, bits in enumerate((0x44, 2.0**63, -1.0)))
    export(recording(*odd), tmp_path / "run.parquet")
    assert parquet.read_table(tmp_path / "run.parquet")["clock_reasons"].to_pylist() == [0x44, None, None]
