"""`gpu-planner report`."""

import json
from datetime import date

import pytest
from recordings import training, two_steps

from planner.cli.main import main
from planner.cli.report_file import run
from planner.paths import resources_dir
from planner.plan.files import load_plan
from planner.trace.files import save_recording
from planner.units import MIB

DAY = date(2026, 11, 22)
LLAMA = ["meta-llama/Llama-3.1-8B", "--gpu", "rtx-4090"]


def test_the_report_on_a_plan_opens_as_the_plan(tmp_path, capsys):
    file = tmp_path / "report.html"
    assert run([*LLAMA, "--batch", "2", "-o", str(file)], DAY) == 0
    assert capsys.readouterr().out == f"Wrote {file}: meta-llama/Llama-3.1-8B on 1 × GeForce RTX 4090.\n"
    assert load_plan(file).workload.batch == 2
    assert "22 November 2026" in file.read_text(encoding="utf-8")
    assert main(["fit", str(file)]) == 0
    assert "2 × 4,096 tokens" in capsys.readouterr().out


def test_the_day_can_be_fixed_and_the_result_be_read_by_a_program(tmp_path, capsys):
    file = tmp_path / "report.md"
    assert main(["report", *LLAMA, "--date", "2026-12-01", "-o", str(file), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"file": str(file), "format": "md", "title": "meta-llama/Llama-3.1-8B on 1 × GeForce RTX 4090"}
    assert "1 December 2026" in file.read_text(encoding="utf-8")


def test_two_plans_are_compared(tmp_path):
    file = tmp_path / "both.md"
    assert run([*LLAMA, "--versus", "l40s", "-o", str(file)], DAY) == 0
    assert "## Memory of both" in file.read_text(encoding="utf-8")


def test_a_recording_has_a_report_of_its_own(tmp_path):
    file = tmp_path / "run.md"
    assert run([str(resources_dir() / "demo" / "training.gpurec"), "--tariff", "0.3", "-o", str(file)], DAY) == 0
    assert "at $0.30 per kWh" in file.read_text(encoding="utf-8")
    assert run([str(resources_dir() / "demo" / "training.gpurec"), "-o", str(file)], DAY) == 0
    assert "per kWh" not in file.read_text(encoding="utf-8")


def test_a_trace_is_judged_on_the_card_that_is_named(tmp_path):
    recorded, file = tmp_path / "net.trace.json.gz", tmp_path / "net.md"
    save_recording(recorded, two_steps(MIB, training(batch=8)))
    assert run([str(recorded), "-o", str(file)], DAY) == 0
    assert "RTX 4090" not in file.read_text(encoding="utf-8").partition("##")[0]
    assert run([str(recorded), "--gpu", "rtx-4090", "--count", "1", "-o", str(file)], DAY) == 0
    assert "Fits" in file.read_text(encoding="utf-8").partition("##")[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-o", "report.docx"], "a report cannot have this format"),
        (["-o", "missing/report.html"], "cannot be written"),
        (["-o", "report.html", "--date", "tomorrow"], "is not a day such as 2026-11-24"),
        ([], "-o/--output"),
    ],
)
def test_wrong_input_is_named(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    assert main(["report", *LLAMA, *words]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
