"""Runs of MLflow: its own names and units, and what happens where it is missing or refuses."""

import os
import sys

import pytest
from recording_kit import WALL
from tracker_fakes import FakeMlflow

from planner.errors import RecordingError
from planner.installation import extra_command
from planner.present.trackers.mlflow import MlflowRun, mlflow_metrics
from planner.present.trackers.run import RunStart, TextNote, TrackedMoment, TrackedPlan

START = RunStart("night 1", WALL, "a test")
# The five names of a card in mlflow/system_metrics/metrics/gpu_monitor.py, with their units there.
MLFLOW_NAMES = {
    "system/gpu_0_utilization_percentage": 50.0,
    "system/gpu_0_memory_usage_megabytes": 6000.0,
    "system/gpu_0_memory_usage_percentage": 25.0,
    "system/gpu_0_power_usage_watts": 90.0,
    "system/gpu_0_power_usage_percentage": 30.0,
}


@pytest.fixture
def mlflow(monkeypatch):
    fake = FakeMlflow()
    for name, module in (("mlflow", fake), ("mlflow.entities", fake.entities), ("sqlalchemy", FakeMlflow())):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delenv("MLFLOW_DISABLE_TELEMETRY", raising=False)
    return fake


def test_the_names_and_units_of_a_card_are_mlflows_own():
    values = {"utilization_fraction": 0.5, "memory_used_bytes": 6e9, "power_watts": 90.0}
    limits = {"gpu/0": {"memory_used_bytes": 24e9, "power_watts": 300.0}}
    assert dict(mlflow_metrics(TrackedMoment(WALL, 0.0, {"gpu/0": values}, {}, limits))) == MLFLOW_NAMES


def test_other_quantities_have_similar_names():
    host = {"cpu_fraction": 0.25, "memory_used_bytes": 1e9, "disk_read_bytes_per_s": 5e6}
    values = {"host": host, "gpu/0/mig/1": {"memory_used_bytes": 2e9}, "plan/0": {"memory_bytes": 3e9}}
    moment = TrackedMoment(
        WALL, 0.0, values, {"gpu/0": {"temperature_celsius": 70.0}}, {"host": {"memory_used_bytes": 4e9}}
    )
    assert dict(mlflow_metrics(moment)) == {
        "system/cpu_utilization_percentage": 25.0,
        "system/system_memory_usage_megabytes": 1000.0,
        "system/system_memory_usage_percentage": 25.0,
        "system/disk_read_megabytes_per_second": 5.0,
        "system/gpu_0_mig_1_memory_usage_megabytes": 2000.0,
        "plan/gpu_0_memory_megabytes": 3000.0,
        "system/gpu_0_temperature_celsius/max": 70.0,
    }


def test_a_run_is_written_in_few_requests_with_true_times(mlflow, tmp_path):
    run = MlflowRun(tmp_path / "runs", START)
    assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "true"
    for second in range(600):
        run.add_values(TrackedMoment(WALL + second, second, {"gpu/0": {"power_watts": 1.0, "sm_clock_mhz": 2.0}}))
    run.add_text("events", TextNote(WALL, 0.0, "Xid 79"))
    run.add_text("events", TextNote(WALL + 1, 1.0, "Xid 31"))
    plan = {f"field {number}": number for number in range(150)} | {"trace": None, "corrections": []}
    run.add_plan(TrackedPlan("a plan", plan), TextNote(WALL, 0.0, "a plan, and more"))
    run.flush()
    run.close(WALL + 600)
    assert mlflow.uri == f"sqlite:///{(tmp_path / 'runs' / 'mlflow.db').as_posix()}"
    assert mlflow.runs == [
        ("1", round(WALL * 1000), {"mlflow.source.name": "a test", "mlflow.source.type": "LOCAL"}, "night 1")
    ]
    assert [size for size in mlflow.batches if size] == [1000, 200]
    assert mlflow.metrics[-1] == ("system/gpu_0_sm_clock_mhz", 2.0, round((WALL + 599) * 1000), 5990)
    assert (len(mlflow.params), mlflow.params["plan.field 149"], mlflow.files["plan.json"]) == (150, "149", plan)
    assert mlflow.files["events.md"].splitlines()[1] == "- 2023-11-14T22:13:21+00:00 Xid 31"
    assert mlflow.files["plan.md"] == "a plan, and more\n"
    assert mlflow.ended == round((WALL + 600) * 1000)
    assert run.view_command == f"mlflow ui --backend-store-uri sqlite:///{run.place.as_posix()}"
    MlflowRun(tmp_path / "runs", START)
    assert len(mlflow.experiments) == 1


def test_what_mlflow_refuses_is_told_in_its_words(mlflow, tmp_path):
    mlflow.failing = "get_experiment_by_name"
    with pytest.raises(RecordingError, match=r"mlflow\.db: mlflow failed: get_experiment_by_name is refused$"):
        MlflowRun(tmp_path, START)


def test_a_folder_that_cannot_be_made_is_named(mlflow, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordingError, match="cannot be written"):
        MlflowRun(tmp_path / "file" / "runs", START)


def test_without_the_package_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlalchemy", FakeMlflow())
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(RecordingError, match="MLflow needs the package mlflow") as refused:
        MlflowRun(tmp_path / "runs", START)
    assert extra_command("mlflow") in refused.value.hint
    assert list(tmp_path.iterdir()) == []
