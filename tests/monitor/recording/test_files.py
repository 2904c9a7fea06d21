"""Files of recordings: damage costs little, existing files are kept, and errors of the disk are reported."""

import gzip
import random
from pathlib import Path

import pytest
from recording_kit import CARDS, SAMPLES_OF_TWO_MINUTES, opened, values, written

from planner.errors import RecordingError
from planner.monitor.recording.files import write_new
from planner.monitor.recording.recorder import Recorder
from planner.monitor.recording.recording import read_recording


def test_a_recording_is_ordinary_gzip():
    lines = gzip.decompress(written([CARDS, *SAMPLES_OF_TWO_MINUTES])).splitlines()
    assert lines[0].startswith(b'{"recording":{"version":1,')
    assert sum(line.startswith(b'{"sample"') for line in lines) == 130


@pytest.mark.sweep
def test_a_file_cut_anywhere_keeps_what_was_flushed():
    data = written([CARDS, *SAMPLES_OF_TWO_MINUTES])
    whole = values(opened(data))
    before = -1
    for size in range(200, len(data), 7):
        try:
            found = opened(data[:size])
        except RecordingError:
            assert size < 300, "even the first line is missing"
            continue
        kept = values(found)
        assert kept == whole[: len(kept)]
        assert len(kept) >= before
        assert found.loss.places == 0
        before = len(kept)
    assert before >= 128


def test_a_damaged_place_loses_at_most_one_member():
    data = bytearray(written([CARDS, *SAMPLES_OF_TWO_MINUTES]))
    middle = data.index(b"\x1f\x8b\x08", 10) + 40
    data[middle : middle + 20] = bytes(20)
    found = opened(bytes(data))
    assert found.loss.places == 1
    assert 0 < found.loss.lost_bytes < len(data)
    kept = [one.monotonic_seconds for one in values(found)]
    assert kept[:60] == [float(second) for second in range(60)]
    assert kept[-10:] == [float(second) for second in range(120, 130)]


def test_lines_before_a_damaged_place_are_read():
    data = bytearray(written([CARDS, *SAMPLES_OF_TWO_MINUTES[:50]]))
    place = len(data) // 2
    data[place : place + 400] = random.Random(3).randbytes(400)
    found = opened(bytes(data))
    assert found.loss.places == 1
    kept = [one.monotonic_seconds for one in values(found)]
    assert kept == [float(second) for second in range(len(kept))]
    assert 15 <= len(kept) < 50


def test_a_gzip_bomb_is_decompressed_in_limited_steps():
    bomb = bytearray(gzip.compress(bytes(30_000_000), mtime=0))
    bomb[-5000:-4900] = b"\xff" * 100
    with pytest.raises(RecordingError, match="not a recording"):
        opened(bytes(bomb))


def test_a_recording_without_its_beginning_is_read():
    data = written([CARDS, *SAMPLES_OF_TWO_MINUTES])
    found = opened(b"junk" * 20_000 + data[300:])
    assert found.loss.places == 1
    assert next(one.monotonic_seconds for one in values(found)) == 60.0
    assert next(iter(found)) == CARDS


def test_an_existing_file_is_not_overwritten(tmp_path):
    path = tmp_path / "run.gpurec"
    path.write_text("precious")
    with pytest.raises(RecordingError, match="the file already exists"):
        Recorder(path)
    assert path.read_text() == "precious"
    with Recorder(path, replace=True):
        pass
    assert read_recording(path).samples == 0


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(RecordingError, match="cannot be written"):
        Recorder(tmp_path / "missing" / "run.gpurec")


FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="needs a disk that is always full")
def test_a_full_disk_is_an_error_at_the_start():
    with pytest.raises(RecordingError, match="No space left"):
        Recorder(FULL, replace=True)


def test_new_files_are_written_completely_or_not_at_all(tmp_path):
    path = tmp_path / "log.gpurec"
    write_new(path, b"content")
    assert path.read_bytes() == b"content"
    with pytest.raises(RecordingError, match="the file already exists"):
        write_new(path, b"other")
    assert path.read_bytes() == b"content"


def test_a_new_file_that_cannot_be_finished_is_removed(tmp_path):
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(RecordingError, match="File too large"):
            write_new(tmp_path / "log.gpurec", bytes(1000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []
