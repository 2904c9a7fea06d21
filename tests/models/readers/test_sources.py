"""Files that are missing, unreadable, too large or not regular are refused."""

import os
import socket
from pathlib import Path

import pytest

from planner.errors import ModelFileError
from planner.models.readers.config_json import MAX_FILE_BYTES, read_config_file


def refusal(path: Path) -> ModelFileError:
    with pytest.raises(ModelFileError) as caught:
        read_config_file(path)
    assert str(path) in caught.value.message
    assert caught.value.hint
    return caught.value


def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    with file.open("wb") as stream:
        stream.truncate(2**30)
    assert "is 1,024 MiB" in refusal(file).message
    with file.open("wb") as stream:
        stream.truncate(MAX_FILE_BYTES)
    assert "not JSON" in refusal(file).message


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    assert "No such file" in refusal(tmp_path / "config.json").message
    assert "File name too long" in refusal(tmp_path / ("x" * 5000)).message


def test_a_null_character_in_a_path_is_refused() -> None:
    with pytest.raises(ModelFileError):
        read_config_file(Path("a\0b"))


def test_a_loop_of_symbolic_links_is_refused(tmp_path: Path) -> None:
    first, second = tmp_path / "config.json", tmp_path / "other.json"
    first.symlink_to(second)
    second.symlink_to(first)
    assert "cannot be read" in refusal(first).message


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 0)() == 0, reason="root may read everything")
def test_an_unreadable_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text("{}")
    file.chmod(0)
    assert "Permission denied" in refusal(file).message


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="Linux shows a process's memory as a file")
def test_a_file_that_fails_while_it_is_read_is_refused() -> None:
    assert "cannot be read" in refusal(Path("/proc/self/mem")).message


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_what_is_not_a_regular_file_is_refused_without_waiting(tmp_path: Path) -> None:
    pipe = tmp_path / "config.json"
    os.mkfifo(pipe)
    assert "not a regular file" in refusal(pipe).message
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        assert "not a regular file" in refusal(tmp_path / "socket").message
