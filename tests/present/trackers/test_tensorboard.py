"""Runs of TensorBoard: tags with their units, folders, and files that cannot be written."""

import math
import sys
from io import BytesIO

import pytest
from event_reader import checksum, events, fields, records, single
from recording_kit import WALL

from planner.errors import RecordingError
from planner.present.trackers.run import RunStart, TextNote, TrackedMoment, TrackedPlan
from planner.present.trackers.tensorboard import (
    EventFile,
    EventText,
    TensorBoardRun,
    crc32c,
    scalar_tag,
    tensorboard_tag,
)

START = RunStart("night 1", WALL, "a test")


def test_tags_have_the_unit_of_their_numbers():
    names = ("utilization_fraction", "memory_used_bytes", "power_watts", "energy_joules", "temperature_celsius")
    assert [tensorboard_tag("gpu/0", name)[0] for name in names] == [
        "gpu/0/utilization",
        "gpu/0/memory_used_GiB",
        "gpu/0/power_W",
        "gpu/0/energy_kJ",
        "gpu/0/temperature_C",
    ]
    assert tensorboard_tag("host", "disk_read_bytes_per_s") == ("host/disk_read_GB_per_s", 1e-9)
    assert tensorboard_tag("gpu/0", "pcie_replays") == ("gpu/0/pcie_replays", 1.0)


def test_a_run_holds_numbers_peaks_texts_and_the_plan(tmp_path):
    run = TensorBoardRun(tmp_path / "my runs", START)
    run.add_values(
        TrackedMoment(WALL, 0.0, {"gpu/0": {"memory_used_bytes": 3 * 2**29}}, {"gpu/0": {"power_watts": 1.1}})
    )
    run.add_values(TrackedMoment(WALL + 1, 1.0, {"gpu/0": {"memory_used_bytes": 2**30}}))
    run.add_plan(TrackedPlan("a plan", {}), TextNote(WALL, 0.0, "a plan, and more"))
    run.flush()
    run.close(WALL + 1)
    (path,) = (tmp_path / "my runs" / "night 1").iterdir()
    assert path.name == "events.out.tfevents.1700000000.gpu-planner"
    assert events(path.read_bytes()) == [
        (WALL, 0, {"gpu/0/memory_used_GiB": 1.5, "gpu/0/power_W/max": single(1.1)}),
        (WALL + 1, 10, {"gpu/0/memory_used_GiB": 1.0}),
        (WALL, 0, {"plan": "a plan, and more"}),
    ]
    assert run.view_command == f"tensorboard --logdir '{tmp_path / 'my runs'}'"


def test_a_run_is_not_written_over(tmp_path):
    TensorBoardRun(tmp_path, START).close(WALL)
    with pytest.raises(RecordingError, match="night 1: the file already exists"):
        TensorBoardRun(tmp_path, START)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordingError, match="cannot be written"):
        TensorBoardRun(tmp_path / "file" / "runs", START)


@pytest.mark.skipif(sys.platform != "linux", reason="needs a device that is always full")
def test_a_full_disk_is_named_at_the_end(tmp_path):
    run = TensorBoardRun(tmp_path, START)
    run._stream.close()
    run._stream = open("/dev/full", "wb")  # noqa: SIM115  # closed by the run
    run._file._stream = run._stream
    run.add_text("events", TextNote(WALL, 0.0, "x"))
    with pytest.raises(RecordingError, match="No space left"):
        run.close(WALL)


def test_the_checksum_is_that_of_the_standard():
    # The examples of RFC 3720, appendix B.4, and the usual check value.
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E
    assert crc32c(b"") == 0
    assert all(crc32c(bytes(range(length))) == checksum(bytes(range(length))) for length in range(9))


def test_numbers_and_texts_are_read_back_with_their_times():
    stream = BytesIO()
    file = EventFile(stream, 1_700_000_000.5)
    tags = [scalar_tag(f"gpu/0/{'x' * length}") for length in range(40)]
    values = [math.exp(place) * (-1) ** place for place in range(40)]
    file.add_scalars(1_700_000_001.123, 300, zip(tags, values, strict=True))
    file.add_text(1_700_000_002.0, 0, EventText("events", "Xid 79 – “lost”\udcff"))
    file.flush()
    found = events(stream.getvalue())
    wanted = {f"gpu/0/{'x' * length}": single(value) for length, value in enumerate(values)}
    assert found[0] == (1_700_000_001.123, 300, wanted)
    assert found[1] == (1_700_000_002.0, 0, {"events": "Xid 79 – “lost”\\udcff"})


def test_events_are_in_the_file_before_it_is_closed(tmp_path):
    with (tmp_path / "events").open("wb") as stream:
        file = EventFile(stream, 0.0)
        file.add_scalars(1.0, 1, [(scalar_tag("a"), 2.0)])
        file.flush()
        assert events((tmp_path / "events").read_bytes()) == [(1.0, 1, {"a": 2.0})]


def test_what_a_float_cannot_hold_is_left_out():
    stream = BytesIO()
    odd = [1.0, 1e39, -1e39, math.inf, math.nan, 2.0]
    EventFile(stream, 0.0).add_scalars(1.0, 1, [(scalar_tag(str(place)), value) for place, value in enumerate(odd)])
    assert events(stream.getvalue()) == [(1.0, 1, {"0": 1.0, "5": 2.0})]
    EventFile(stream, 0.0).add_scalars(1.0, 1, [])
    assert fields(fields(records(stream.getvalue())[-1])[5][0]) == {}


def test_a_file_that_was_cut_anywhere_keeps_the_whole_events_before():
    stream = BytesIO()
    file, tag = EventFile(stream, 5.0), scalar_tag("gpu/0/power_W")
    ends = [len(stream.getvalue())]
    for second in range(3):
        file.add_scalars(5.0 + second, 10 * second, [(tag, float(second))])
        ends.append(len(stream.getvalue()))
    data = stream.getvalue()
    # In a length, its checksum, an event and its checksum.
    for cut in range(ends[0], len(data) + 1):
        assert len(events(data[:cut])) == sum(end <= cut for end in ends) - 1
