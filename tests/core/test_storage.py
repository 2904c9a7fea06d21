"""Files are read within limits, whatever their size is said to be."""

from pathlib import Path

import pytest

from planner.storage import UnreadableFileError, read_regular, write_atomically

STATUS = Path("/proc/self/status")


def test_what_was_written_is_read(tmp_path: Path):
    write_atomically(tmp_path / "a", b"\x00\xff")
    assert read_regular(tmp_path / "a", "plan", 2) == b"\x00\xff"
    with pytest.raises(UnreadableFileError, match=r"too large for a plan \(2 bytes\)"):
        read_regular(tmp_path / "a", "plan", 1)


@pytest.mark.skipif(not STATUS.exists(), reason="only Linux has files that are longer than they say")
def test_a_file_that_is_longer_than_it_says_is_not_read_to_its_end():
    assert STATUS.stat().st_size == 0
    with pytest.raises(UnreadableFileError, match="too large"):
        read_regular(STATUS, "plan", 10)
