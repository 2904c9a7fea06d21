"""Files are read within limits, whatever their size is said to be."""

import os
from pathlib import Path

import pytest

from planner.storage import (
    UNFINISHED_SUFFIX,
    UnreadableFileError,
    delete_unfinished,
    may_exist,
    read_regular,
    read_stored,
    set_aside,
    write_atomically,
    write_stored,
)

STATUS = Path("/proc/self/status")


def test_what_was_written_is_read(tmp_path: Path):
    write_atomically(tmp_path / "a", b"\x00\xff")
    assert read_regular(tmp_path / "a", "plan", 2) == b"\x00\xff"
    with pytest.raises(UnreadableFileError, match=r"too large for a plan \(2 bytes\)"):
        read_regular(tmp_path / "a", "plan", 1)


@pytest.mark.skipif(not STATUS.exists(), reason="only Linux has files that are longer than they say")
def test_a_file_that_is_longer_than_it_says_is_read_to_the_limit():
    assert STATUS.stat().st_size == 0
    with pytest.raises(UnreadableFileError, match="too large"):
        read_regular(STATUS, "plan", 10)
    assert b"VmRSS:" in read_regular(STATUS, "plan", 10**6)


def test_a_stored_file_may_be_missing_and_its_folder_is_made(tmp_path: Path):
    file = tmp_path / "home" / "plans" / "a"
    assert read_stored(file, "plan", 10) is None
    write_stored(file, "text")
    assert read_stored(file, "plan", 10) == b"text"
    assert read_stored(file / "below a file", "plan", 10) is None


@pytest.mark.parametrize("name", ["a" * 5000, "a\0b"], ids=["too long", "with a zero"])
def test_what_cannot_be_looked_for_says_why_when_it_is_read(tmp_path: Path, name: str):
    assert may_exist(tmp_path / name)
    with pytest.raises(UnreadableFileError, match=r"cannot be read|not a valid path"):
        read_stored(tmp_path / name, "plan", 10)


def test_a_write_whose_unfinished_file_is_deleted_succeeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    synchronize, others = os.fsync, tmp_path / f".b.12345678{UNFINISHED_SUFFIX}"

    def lose_file(handle: int) -> None:
        monkeypatch.setattr("os.fsync", synchronize)
        synchronize(handle)
        others.touch()
        delete_unfinished(tmp_path, "a")

    monkeypatch.setattr("os.fsync", lose_file)
    write_atomically(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "new"
    assert set(tmp_path.iterdir()) == {tmp_path / "a", others}
    (tmp_path / f".c.12345678{UNFINISHED_SUFFIX}").mkdir()  # which cannot be deleted as a file
    delete_unfinished(tmp_path)
    assert not others.exists()


def test_what_is_set_aside_replaces_nothing(tmp_path: Path):
    for number in range(3):
        (tmp_path / "a").write_text(str(number))
        set_aside(tmp_path / "a")
    assert [(tmp_path / f"a.bad{end}").read_text() for end in ("", "2", "3")] == ["0", "1", "2"]
    assert set_aside(tmp_path / "gone") is None


def test_what_cannot_be_renamed_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise PermissionError

    (tmp_path / "a").touch()
    monkeypatch.setattr(Path, "replace", refuse)
    assert set_aside(tmp_path / "a") is None
    assert (tmp_path / "a").exists()
