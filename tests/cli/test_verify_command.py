"""`gpu-planner verify`."""

import io
import json
import sys
from pathlib import Path

import pytest

from planner.cli.main import main
from planner.plan.files import load_plan

TRAIN = ("verify", "meta-llama/Llama-3.2-1B", "--gpu", "RTX 4090", "--task", "training")
STEP = '{"seconds_per_step": 0.25, "allocated_bytes.all.peak": 25132385536, "reserved_bytes.all.peak": 25506127360}'


@pytest.fixture
def log(tmp_path) -> Path:
    path = tmp_path / "run.log"
    path.write_text(STEP, encoding="utf-8")
    return path


def test_the_commands_are_printed_with_what_they_should_show(capsys):
    assert main(TRAIN) == 0
    out = capsys.readouterr().out
    assert out.startswith("# Memory and speed: in your script\nimport json, time, torch\n")
    assert "Optimizer step" in out
    assert "seconds_per_step" in out
    assert "nvidia-smi --query-compute-apps=" in out
    assert main((*TRAIN, "--json")) == 0
    checks = json.loads(capsys.readouterr().out)
    assert [check["language"] for check in checks] == ["python", "shell"]
    assert checks[0]["expected"][0]["name"] == "allocated"


def test_what_they_print_is_compared_from_a_file_or_from_standard_input(capsys, log, monkeypatch):
    assert main((*TRAIN, "--log", str(log))) == 0
    out = capsys.readouterr().out
    assert "In range" in out
    assert "Optimizer step" in out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(STEP.encode())))
    assert main((*TRAIN, "--log", "-", "--json")) == 0
    comparison = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in comparison["rows"]] == ["allocated", "reserved"]
    assert comparison["figures"][0]["measured"]["value"] == 0.25


def test_the_measurement_is_written_to_a_plan_that_fit_reads(capsys, log, tmp_path):
    saved = tmp_path / "measured.json"
    assert main((*TRAIN, "--log", str(log), "--save", str(saved))) == 0
    plan = load_plan(saved)
    assert (plan.timing.measured.value, len(plan.corrections)) == (0.25, 1)
    capsys.readouterr()
    assert main(("fit", str(saved), "--json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["time"]["seconds"] == pytest.approx(0.25)
    assert found["memory"]["reserved_bytes"] == pytest.approx(25506127360, abs=2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*TRAIN, "--save", "plan.json"), "there is nothing measured to write"),
        (("verify", "meta-llama/Llama-3.1-8B", "--profile", "vllm"), "the plan has no GPU"),
    ],
)
def test_wrong_input_is_refused(capsys, words, message):
    assert main(words) == 2
    assert message in capsys.readouterr().err


def test_a_log_without_anything_to_keep_writes_nothing(capsys, tmp_path):
    log, saved = tmp_path / "smi.log", tmp_path / "measured.json"
    log.write_text("index, memory.used [MiB]\n0, 1000 MiB\n", encoding="utf-8")
    assert main((*TRAIN, "--log", str(log), "--save", str(saved))) == 2
    assert "measured nothing that the plan can keep" in capsys.readouterr().err
    assert not saved.exists()
