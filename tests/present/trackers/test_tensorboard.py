"""Runs of TensorBoard: tags with their units, folders, and files that cannot be written."""

import sys

import pytest
from event_reader import events, single
from recording_kit import WALL

from planner.errors import RecordingError
from planner.present.trackers.moments import TextNote, TrackedMoment
from planner.present.trackers.run import RunStart, TrackedPlan
from planner.present.trackers.tensorboard import TensorBoardRun, tensorboard_tag

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
