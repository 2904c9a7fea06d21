"""Reading of recordings: complete, cut off and invalid files."""

import gzip
import os
import zlib
from pathlib import Path

import pytest
from recording_kit import CARDS, SAMPLES_OF_TWO_MINUTES, opened, recording, values

from planner.errors import RecordingError
from planner.monitor.readings.events import Timestamp
from planner.monitor.recording.files import MAX_LINE_BYTES
from planner.monitor.recording.recording import DataLoss, read_recording
from planner.monitor.recording.records import (
    RecordedMark,
    RecordedPlan,
    RecordingHeader,
    record_line,
)


def test_a_complete_recording_is_read_back():
    mark, plan = RecordedMark(1.0, 2.0, "here"), RecordedPlan({"model": "llama"})
    found = recording(plan, *SAMPLES_OF_TWO_MINUTES, mark)
    assert list(found) == [CARDS, *SAMPLES_OF_TWO_MINUTES]
    assert (found.marks, found.plan, found.samples) == ((mark,), {"model": "llama"}, 130)
    assert (found.start, found.seconds, found.first.wall_seconds) == (
        0.0,
        129.0,
        SAMPLES_OF_TWO_MINUTES[0].wall_seconds,
    )
    assert (found.header.program, found.loss, found.notes) == ("a test", DataLoss(), ())
    assert list(opened(found.content())) == list(found)


def test_a_recording_without_samples_is_valid():
    found = recording()
    assert (found.samples, found.seconds, found.first, found.start) == (0, 0.0, None, 0.0)
    assert list(found) == [CARDS]


def test_a_jump_reads_from_the_start_of_a_member():
    found = recording(*SAMPLES_OF_TWO_MINUTES)
    late = list(found.timed(125.0))
    assert late[0].update == CARDS
    assert late[1].update == SAMPLES_OF_TWO_MINUTES[120]
    assert len(list(found.timed(-5.0))) == len(list(found.timed())) == 131


def test_an_unclosed_file_is_marked_as_cut():
    found = recording(*SAMPLES_OF_TWO_MINUTES, is_ended=False)
    assert found.loss == DataLoss(is_cut=True)
    assert len(values(found)) == 130


def member(*lines):
    compressor = zlib.compressobj(wbits=31)
    return compressor.compress(b"".join(line + b"\n" for line in lines)) + compressor.flush()


HEADER = record_line(RecordingHeader(1, "a test", 0.0)).rstrip()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"timestamp, power.draw [W]\n",
        os.urandom(2000),
        gzip.compress(b"hello\n", mtime=0),
        gzip.compress(bytes(MAX_LINE_BYTES + 2_000_000), mtime=0),
        member(b'{"at":{"monotonic_seconds":1,"wall_seconds":2}}'),
        member(HEADER, *[b""] * 20_000),
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00" * 500,
    ],
)
def test_other_files_are_not_recordings(data):
    with pytest.raises(RecordingError, match="a test: not a recording of the monitor") as refused:
        opened(data)
    assert "in the window's Monitor menu" in refused.value.hint


def test_a_recording_of_a_later_version_is_an_error():
    with pytest.raises(RecordingError, match=r"was written by a later version \(gpu-planner 9\)"):
        opened(member(record_line(RecordingHeader(2, "gpu-planner 9", 0.0)).rstrip()))


def test_bad_lines_are_skipped_and_counted():
    good = [record_line(one).rstrip() for one in SAMPLES_OF_TWO_MINUTES[:3]]
    found = opened(member(HEADER, b'{"sample":{}}', good[0], b"junk", good[1], good[2], b'{"sample":'))
    assert [one.monotonic_seconds for one in values(found)] == [0.0, 1.0, 2.0]
    assert found.loss == DataLoss(is_cut=True, bad_lines=3, reason="'at' is missing")


def test_a_value_beyond_any_card_is_named_with_its_field():
    too_large = b'{"inventory":{"driver":"580","devices":[{"facts":{"memory_total_bytes":1e30}}]}}'
    found = opened(member(HEADER, too_large, record_line(SAMPLES_OF_TWO_MINUTES[0]).rstrip()))
    assert found.loss.reason == "inventory.devices.0.facts.memory_total_bytes: 1e+30 is not a number below 10³⁰"


def test_an_inventory_is_never_later_than_the_sample_after_it():
    late = [record_line(one).rstrip() for one in (Timestamp(1e6, 0.0), CARDS, SAMPLES_OF_TWO_MINUTES[1])]
    found = opened(member(HEADER, *late, *late[:2]))
    assert [timed.monotonic_seconds for timed in found.timed()] == [1.0, 1.0]


def test_too_many_marks_are_not_kept():
    mark = record_line(RecordedMark(0.0, 0.0, "x")).rstrip()
    assert len(opened(member(HEADER, *[mark] * 10_001)).marks) == 10_000


def test_a_path_that_is_not_a_file_is_an_error(tmp_path):
    with pytest.raises(RecordingError, match=": not a file"):
        read_recording(tmp_path)
    with pytest.raises(RecordingError, match="cannot be read"):
        read_recording(tmp_path / "missing")
    with pytest.raises(RecordingError, match="cannot be read"):
        read_recording(Path("a\0b"))
