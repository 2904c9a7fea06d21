"""Export of recordings and live readings to TensorBoard, and what a run that was cut short holds."""

import sys
from threading import Event

import pytest
from event_reader import events
from recording_kit import SAMPLES_OF_TWO_MINUTES, WALL, A, B, recording, sample
from tracker_fakes import FakeMlflow, FakeWandb

from planner.errors import RecordingError
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.reading import Reading
from planner.monitor.readings.sample import Sample, Xid
from planner.monitor.recording.records import RecordedMark, RecordedPlan
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.present.trackers import tracking as tracking_module
from planner.present.trackers.run import RunStart
from planner.present.trackers.tensorboard import TensorBoardRun
from planner.present.trackers.tracking import (
    TRACKER_TITLES,
    TRACKERS,
    LiveTracking,
    export_to_tracker,
    open_run,
    tracked_plan,
)

PLAN = Plan(model=ModelChoice(id="Qwen/Qwen2.5-0.5B"), gpu="rtx-4090", count=1).model_dump(mode="json")
RTX = Inventory(
    "580.65.06",
    devices=(Device(A, "NVIDIA GeForce RTX 4090", 0, facts={"memory_total_bytes": Reading(24_564.0 * 2**20)}),),
)


def written(folder):
    (path,) = folder.iterdir()
    return events(path.read_bytes())


def test_a_recording_is_written_with_its_true_times_marks_and_notes(tmp_path, catalog):
    mark = RecordedMark(10.0, WALL + 10, "first step")
    found = recording(*SAMPLES_OF_TWO_MINUTES, mark, is_ended=False)
    run = export_to_tracker(found, tmp_path, "tensorboard", catalog)
    assert (run.place, run.values) == (tmp_path / "a test", 130)
    read = written(run.place)
    powers = [(at, step, values["gpu/0/power_W"]) for at, step, values in read if "gpu/0/power_W" in values]
    assert powers == [(WALL + second, 10 * second, 100.0 + second) for second in range(130)]
    texts = [(step, values) for _, step, values in read if not any("power" in tag for tag in values)]
    cards = "- gpu/0: NVIDIA Test 0\n- gpu/1: NVIDIA Test 1\n- driver 580.65.06"
    assert texts[:2] == [(0, {"recording": cards}), (100, {"marks": "first step"})]
    assert (texts[2][0], len(texts)) == (1290, 3), "the recording was cut off, which a note at its end says"
    again = export_to_tracker(found, tmp_path / "again", "tensorboard", catalog)
    assert written(again.place) == read


def test_the_plan_is_a_text_and_lines_beside_the_readings(tmp_path, catalog):
    found = recording(RTX, RecordedPlan(PLAN), *SAMPLES_OF_TWO_MINUTES)
    read = written(export_to_tracker(found, tmp_path, "tensorboard", catalog).place)
    plans = [(step, values) for _, step, values in read if any(tag.startswith("plan/") for tag in values)]
    assert [step for step, _ in plans] == [0, 600, 1200, 1290]
    assert all(values == plans[0][1] for _, values in plans)
    assert plans[0][1]["plan/0/power_W"] == 450.0
    assert 0.9 < plans[0][1]["plan/0/memory_GiB"] < 6
    (text,) = [values["plan"] for *_, values in read if "plan" in values]
    assert text.startswith("Qwen/Qwen2.5-0.5B · ")
    assert '"gpu": "rtx-4090"' in text


def test_another_plan_replaces_the_recorded_one_and_one_of_other_cards_draws_no_line(tmp_path, catalog):
    found = recording(RTX, RecordedPlan(PLAN), sample(0.0, a={"power_watts": 1.0}))
    other = {**PLAN, "gpu": "h100-sxm5-80gb"}
    read = written(export_to_tracker(found, tmp_path, "tensorboard", catalog, plan=other).place)
    assert '"gpu": "h100-sxm5-80gb"' in next(values["plan"] for *_, values in read if "plan" in values)
    assert not any(tag.startswith("plan/") for *_, values in read for tag in values)


def test_a_plan_that_cannot_be_read_says_why(tmp_path, catalog):
    found = recording(RecordedPlan({"schema_version": 99}), sample(0.0, a={"power_watts": 1.0}))
    read = written(export_to_tracker(found, tmp_path, "tensorboard", catalog).place)
    assert next(values["plan"] for *_, values in read if "plan" in values).startswith("The plan cannot be evaluated: ")


def test_an_export_that_is_stopped_keeps_what_was_written(tmp_path, catalog):
    calls = iter([False] * 20)
    found = recording(*SAMPLES_OF_TWO_MINUTES)
    run = export_to_tracker(found, tmp_path, "tensorboard", catalog, is_stopped=lambda: next(calls, True))
    assert run.values == 19
    assert export_to_tracker(recording(), tmp_path / "empty", "tensorboard", catalog).values == 0


def test_each_tracker_has_a_title_and_opens(tmp_path, monkeypatch):
    fake = FakeMlflow()
    modules = {"mlflow": fake, "mlflow.entities": fake.entities, "sqlalchemy": fake, "wandb": FakeWandb()}
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    start = RunStart("x", WALL, "a test")
    runs = [open_run(tmp_path, name, start) for name in TRACKERS]
    assert [type(run).__name__ for run in runs] == ["TensorBoardRun", "MlflowRun", "WandbRun"]
    runs[0].close(WALL)
    assert tuple(TRACKER_TITLES) == TRACKERS


def test_a_file_is_no_folder_for_runs(tmp_path, catalog):
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordingError, match="is not a folder"):
        export_to_tracker(recording(), tmp_path / "file", "tensorboard", catalog)


def test_live_readings_are_written_while_they_come(tmp_path, catalog, monkeypatch):
    flushed, flush = Event(), TensorBoardRun.flush
    monkeypatch.setattr(TensorBoardRun, "flush", lambda run: flush(run) or flushed.set())
    live = LiveTracking(tmp_path, "tensorboard", "night 1", catalog)
    live.note(RTX)
    assert flushed.wait(60)
    updates = [sample(10.0, a={"power_watts": 1.0}), sample(11.0, a={"power_watts": 2.0})]
    for item in (*updates, RecordedMark(11.0, WALL + 11, "x"), RecordedPlan(PLAN)):
        live.note(item)
    live.note(Sample(12.0, WALL + 12, {}, xids=(Xid(A, 79),)))
    live.close()
    assert (live.failure, live.result.place, live.result.values) == (None, tmp_path / "night 1", 2)
    tags = [tag for *_, values in written(live.result.place) for tag in values]
    assert tags[:4] == ["recording", "gpu/0/power_W", "marks", "plan"]
    assert {"events", "plan/0/memory_GiB"} <= {*tags}
    live.note(RTX)  # too late, and without effect


def test_a_tracker_that_fails_says_why(tmp_path, catalog, monkeypatch):
    live = LiveTracking(tmp_path / "a", "tensorboard", "x", catalog)
    monkeypatch.setattr(TensorBoardRun, "add_text", _refuse)
    live.note(sample(10.0, a={"power_watts": 1.0}))
    live.close()
    assert live.failure == "x: is refused"
    live = LiveTracking(tmp_path / "b", "tensorboard", "x", catalog)
    monkeypatch.setattr(TensorBoardRun, "add_text", _find_disk_full)
    live.note(sample(10.0, a={"power_watts": 1.0}))
    live.close()
    assert (live.failure, live.result) == ("No space left on device", None)


def _refuse(*_values):
    raise RecordingError("x", "is refused")


def _find_disk_full(*_values):
    raise OSError(28, "No space left on device")


def test_a_tracker_that_hangs_never_delays_the_readings(tmp_path, catalog, monkeypatch):
    hangs, go_on = Event(), Event()
    monkeypatch.setattr(TensorBoardRun, "add_text", lambda *_values: hangs.set() or go_on.wait(60))
    for name, value in (("_MAX_QUEUED", 2), ("_CLOSE_TIMEOUT_SECONDS", 0.01)):
        monkeypatch.setattr(tracking_module, name, value)
    live = LiveTracking(tmp_path / "a", "tensorboard", "x", catalog)
    live.note(sample(0.0, a={"power_watts": 1.0}))
    assert hangs.wait(60)
    for second in range(1, 4):
        live.note(sample(float(second), a={"power_watts": 1.0}))
    assert live.failure == "does not keep up with the readings"
    live.close()
    slow = LiveTracking(tmp_path / "b", "tensorboard", "x", catalog)
    slow.note(sample(0.0, a={"power_watts": 1.0}))
    slow.close()
    assert slow.failure == "does not keep up with the readings"
    go_on.set()
    for each in (live, slow):
        each._queue.put(None)
        each._thread.join(10)


def test_the_cards_of_a_recording_without_a_driver_are_none(tmp_path, catalog):
    read = written(export_to_tracker(recording(Inventory(), sample(0.0)), tmp_path, "tensorboard", catalog).place)
    assert read[0][2] == {"recording": "- no driver"}


TRAINED = Plan(model=ModelChoice(id="Qwen/Qwen2.5-0.5B"), gpu="rtx-4090", count=2)
MEMORY = {"memory_total_bytes": Reading(24_564.0 * 2**20)}


def test_each_card_of_the_plan_has_its_predictions(catalog):
    devices = tuple(Device(uuid, "NVIDIA GeForce RTX 4090", at, facts=MEMORY) for at, uuid in enumerate((A, B)))
    found = tracked_plan(TRAINED.model_dump(mode="json"), Inventory(devices=devices), catalog)
    expected = {"memory_bytes": evaluate(TRAINED, catalog).memory.total_bytes, "power_watts": 450.0}
    assert found.predictions == {"plan/0": expected, "plan/1": expected}
    assert found.sentence.startswith("Qwen/Qwen2.5-0.5B · ")
    assert found.fields["count"] == 2


def test_a_card_of_unknown_power_has_only_memory(catalog):
    gpus = [gpu for gpu in catalog.hardware.gpus if gpu.vendor == "NVIDIA" and gpu.drawn_watts is None]
    for gpu in gpus:
        device = Device(A, gpu.name, 0)
        plan = TRAINED.evolve(gpu=gpu.id, count=1)
        found = tracked_plan(plan.model_dump(mode="json"), Inventory(devices=(device,)), catalog)
        if found.predictions:
            assert set(found.predictions["plan/0"]) == {"memory_bytes"}
            return
    raise AssertionError("every GPU has a known power")
