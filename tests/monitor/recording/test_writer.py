"""Writing of recordings: existing files are kept, and errors of the disk are reported."""

from pathlib import Path

import pytest

from planner.errors import RecordingError
from planner.monitor.recording.recorder import Recorder
from planner.monitor.recording.recording import read_recording
from planner.monitor.recording.writer import write_new


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
