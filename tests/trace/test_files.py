"""Recordings on disk: saved, reopened, exported, kept; every problem is named."""

import csv
import gzip
import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from recordings import Recorder, any_recordings, two_steps

from planner.errors import PlannerError
from planner.trace import files
from planner.trace.analysis.memory import recording_digest
from planner.trace.analysis.trace_result import conclude
from planner.trace.files import (
    export_allocations_csv,
    export_timeline_csv,
    find_recording,
    is_recording_file,
    load_recording,
    save_recording,
    store_recording,
)
from planner.trace.recording import TraceRecording

TEXT = two_steps().model_dump_json()


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz", "trace.JSON.GZ", "no-ending"])
def test_a_loaded_recording_equals_the_saved_one(tmp_path: Path, name: str):
    save_recording(tmp_path / name, two_steps())
    assert load_recording(tmp_path / name) == two_steps()
    assert is_recording_file(tmp_path / name)
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == [name]


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(any_recordings())
def test_any_recording_is_loaded_as_it_was_saved(tmp_path: Path, recording: TraceRecording):
    save_recording(tmp_path / "trace.json.gz", recording)
    assert load_recording(tmp_path / "trace.json.gz") == recording


def test_a_path_may_be_a_string(tmp_path: Path):
    save_recording(str(tmp_path / "net.json.gz"), two_steps())
    assert load_recording(str(tmp_path / "net.json.gz")) == two_steps()


def test_a_compressed_recording_is_small_and_reproducible(tmp_path: Path):
    save_recording(tmp_path / "a.gz", two_steps())
    save_recording(tmp_path / "b.gz", two_steps())
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert len((tmp_path / "a.gz").read_bytes()) < len(TEXT) / 2


def changed(**changes: object) -> str:
    return json.dumps({**json.loads(TEXT), **changes})


def columns(**changes: object) -> str:
    return changed(allocations={**json.loads(TEXT)["allocations"], **changes})


ALL = len(two_steps().allocations.bytes)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ("[" * 100_000, "is nested too deep"),
        (b"\xff\xfe", "is not JSON"),
        ("[]", "not a recording: it has no recording_version"),
        ('{"schema_version": 1}', "not a recording: it has no recording_version"),
        (changed(recording_version=2), "made by a newer version of GPU Planner (recording 2, this one reads 1)"),
        (changed(recording_version="x"), "recording_version: "),
        (changed(spans=[]), "spans: "),
        (changed(colour="red"), "colour: there is no such field"),
        (changed(operators=[]), "the operator of an allocation is not in the list of 0 names"),
        (columns(bytes=[1]), "the columns have different lengths"),
        (gzip.compress(TEXT.encode())[:-20], "cannot be unpacked"),
        (b"\x1f\x8bnonsense", "cannot be unpacked"),
    ],
)
def test_a_file_that_is_not_a_recording_has_a_reason(tmp_path: Path, content: str | bytes, said: str):
    file = tmp_path / "trace.json"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(PlannerError) as caught:
        load_recording(file)
    assert str(file) in caught.value.message
    assert said in caught.value.message
    assert caught.value.hint


def test_an_unreadable_file_is_an_error(tmp_path: Path):
    for path, said in ((tmp_path, "is a folder, not a recording"), (tmp_path / "x", "cannot be read (No such file")):
        with pytest.raises(PlannerError, match=said.replace("(", r"\(")):
            load_recording(path)
        assert not is_recording_file(path)
    assert not is_recording_file(Path("a\0b"))


def test_a_decompression_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(files, "_MAX_RECORDING_BYTES", 1 << 20)
    bomb = tmp_path / "bomb.gz"
    bomb.write_bytes(gzip.compress(b" " * (1 << 26)))
    with pytest.raises(PlannerError, match="unpacks to more than 1,048,576 bytes"):
        load_recording(bomb)
    (tmp_path / "large.json").write_bytes(b" " * ((1 << 20) + 1))
    with pytest.raises(PlannerError, match="too large for a recording"):
        load_recording(tmp_path / "large.json")


@pytest.mark.parametrize("content", [b"", b"garbage", b'{"schema_version": 1}', b"\x1f\x8b", b"\x1f\x8bnonsense"])
def test_other_files_are_no_recordings(tmp_path: Path, content: bytes):
    (tmp_path / "file").write_bytes(content)
    assert not is_recording_file(tmp_path / "file")


@pytest.mark.parametrize(
    "write",
    [
        lambda path: save_recording(path, two_steps()),
        lambda path: export_timeline_csv(path, conclude(two_steps()).timeline),
        lambda path: export_allocations_csv(path, two_steps()),
    ],
)
def test_a_missing_folder_is_an_error(tmp_path: Path, write):
    with pytest.raises(PlannerError, match="cannot be written"):
        write(tmp_path / "missing" / "file")


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_the_timeline_is_exported_with_sums_and_places(tmp_path: Path):
    export_timeline_csv(tmp_path / "timeline.csv", conclude(two_steps()).timeline)
    found = rows(tmp_path / "timeline.csv")
    assert list(found[0])[:5] == ["event", "step", "phase", "live_bytes", "parameters_bytes"]
    parts = [name for name in found[0] if name.endswith("_bytes") and name != "live_bytes"]
    assert all(int(row["live_bytes"]) == sum(int(row[name]) for name in parts) for row in found)
    highest = max(found, key=lambda row: int(row["live_bytes"]))
    assert (highest["phase"], highest["step"], highest["operator"]) == ("backward", "1", "aten.mm")
    assert (highest["module"], highest["line"]) == ("layers.1", "net.py:20")


def test_allocations_are_exported_one_by_one(tmp_path: Path):
    recorder = Recorder()
    recorder.begin("load")
    recorder.make(100, "parameters", "aten.empty", "a", "net.py:1", "5x5")
    recorder.begin("forward", 0)
    recorder.free(recorder.make(7, "temporaries", "aten.add", "a,b", "net.py:2", "7"))
    export_allocations_csv(tmp_path / "all.csv", recorder.recording())
    first, second = rows(tmp_path / "all.csv")
    assert (first["bytes"], first["made_event"], first["freed_event"]) == ("100", "0", "")
    assert (first["phase"], first["category"], first["shape"]) == ("load", "parameters", "5x5")
    assert (second["made_event"], second["freed_event"], second["module"]) == ("1", "2", "a,b")


def test_a_stored_recording_is_found_by_its_digest(tmp_path: Path):
    folder = tmp_path / "home" / "recordings"
    digest = store_recording(folder, two_steps())
    assert digest == recording_digest(two_steps())
    assert find_recording(folder, digest) == two_steps()
    assert find_recording(folder, "0" * 64) is None


def test_a_folder_for_recordings_that_cannot_be_made_is_an_error(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(PlannerError, match="cannot be created"):
        store_recording(tmp_path / "file" / "recordings", two_steps())


@pytest.mark.parametrize("digest", ["", "../secret", "0" * 63, "G" * 64])
def test_a_digest_cannot_name_a_file_elsewhere(tmp_path: Path, digest: str):
    (tmp_path / "secret.json.gz").write_bytes(gzip.compress(TEXT.encode()))
    (tmp_path / "kept").mkdir()
    assert find_recording(tmp_path / "kept", digest) is None


def test_a_damaged_stored_recording_is_an_error(tmp_path: Path):
    digest = store_recording(tmp_path, two_steps())
    (tmp_path / f"{digest}.json.gz").write_bytes(b"\x1f\x8b")
    with pytest.raises(PlannerError, match="damaged"):
        find_recording(tmp_path, digest)


def test_only_the_newest_recordings_are_kept(tmp_path: Path):
    for number in range(55):
        old = tmp_path / f"{number:064}.json.gz"
        old.write_bytes(b"")
        os.utime(old, (number, number))
    digest = store_recording(tmp_path, two_steps())
    kept = sorted(file.name for file in tmp_path.iterdir())
    assert len(kept) == 50
    assert f"{digest}.json.gz" in kept
    assert f"{5:064}.json.gz" not in kept
    assert f"{6:064}.json.gz" in kept


def test_a_file_that_another_process_removes_meanwhile_does_no_harm(tmp_path: Path):
    (tmp_path / f"{0:064}.json.gz").symlink_to(tmp_path / "gone")
    digest = store_recording(tmp_path, two_steps())
    assert find_recording(tmp_path, digest) == two_steps()
