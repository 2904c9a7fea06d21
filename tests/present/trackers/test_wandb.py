"""Offline runs of W&B: its own names and units, and what happens where it is missing or refuses."""

import os
import sys

import pytest
from recording_kit import WALL
from tracker_fakes import FakeWandb

from planner.errors import RecordingError
from planner.installation import extra_command
from planner.present.trackers.run import RunStart, TextNote, TrackedMoment, TrackedPlan
from planner.present.trackers.wandb import WandbRun, wandb_values

START = RunStart("night 1", WALL, "a test")


@pytest.fixture
def wandb(monkeypatch):
    fake = FakeWandb()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    for name in ("WANDB_MODE", "WANDB_ERROR_REPORTING"):
        monkeypatch.delenv(name, raising=False)
    return fake


def test_the_names_and_units_of_a_card_are_those_of_wandb():
    values = {"utilization_fraction": 0.5, "memory_used_bytes": 6e9, "power_watts": 90.0, "pcie_replays": 1.0}
    limits = {"gpu/0": {"memory_used_bytes": 24e9, "power_watts": 300.0}, "host": {"memory_used_bytes": 4e9}}
    found = {"gpu/0": values, "host": {"memory_used_bytes": 2**30}}
    assert dict(wandb_values(TrackedMoment(WALL, 0.0, found, {"gpu/0": {"power_watts": 95.0}}, limits))) == {
        "gpu/0/gpu": 50.0,
        "gpu/0/memoryAllocatedBytes": 6e9,
        "gpu/0/memoryAllocated": 25.0,
        "gpu/0/powerWatts": 90.0,
        "gpu/0/powerPercent": 30.0,
        "gpu/0/powerWatts/max": 95.0,
        "gpu/0/pcie_replays": 1.0,
        "host/memory_used_GiB": 1.0,
    }


def test_a_run_is_written_offline_with_its_times(wandb, tmp_path):
    run = WandbRun(tmp_path / "runs", START)
    assert (os.environ["WANDB_MODE"], os.environ["WANDB_ERROR_REPORTING"]) == ("offline", "false")
    run.add_values(TrackedMoment(WALL + 1, 1.0, {"gpu/0": {"power_watts": 90.0}}))
    run.add_text("marks", TextNote(WALL, 0.0, "first step"))
    run.add_plan(TrackedPlan("a plan", {"count": 2}), TextNote(WALL, 0.0, "a plan, and more"))
    run.flush()
    run.close(WALL + 1)
    assert wandb.rows == [{"time_s": 1.0, "time_unix_s": WALL + 1, "gpu/0/powerWatts": 90.0}]
    assert wandb.axes == {"time_s": None, "gpu/*": "time_s", "host/*": "time_s", "plan/*": "time_s"}
    assert wandb.config == {"program": "a test", "started_unix_s": WALL, "plan": {"count": 2}}
    assert wandb.settings["x_disable_stats"]
    assert (wandb.is_finished, wandb.name) == (True, "night 1")
    assert run.place == tmp_path / "runs" / "wandb" / "offline-run-1"
    files = {path.name: path.read_text() for path in (run.place / "files").iterdir()}
    assert files == {"marks.md": "- 2023-11-14T22:13:20+00:00 first step\n", "plan.md": "a plan, and more\n"}
    assert run.view_command == f"wandb sync {run.place}"


@pytest.mark.parametrize("name", ["init", "log"])
def test_what_wandb_refuses_is_told_in_its_words(wandb, tmp_path, name):
    wandb.failing = name
    with pytest.raises(RecordingError, match=f"runs: wandb failed: {name} is refused"):
        WandbRun(tmp_path / "runs", START).add_values(TrackedMoment(WALL, 0.0, {}))


def test_a_folder_that_cannot_be_made_is_named(wandb, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordingError, match="cannot be written"):
        WandbRun(tmp_path / "file" / "runs", START)


def test_without_the_package_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(RecordingError, match="W&B needs the package wandb") as refused:
        WandbRun(tmp_path / "runs", START)
    assert extra_command("wandb") in refused.value.hint
    assert list(tmp_path.iterdir()) == []
