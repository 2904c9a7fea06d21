"""`gpu-planner fit` on a plan about a traced module."""

from pathlib import Path

import pytest
from recordings import training, two_steps

from planner.cli.main import main
from planner.plan.files import load_plan, save_plan
from planner.plan.plan import ModelChoice, Plan
from planner.trace.analysis.memory import facts_of
from planner.trace.request import Input, TensorInput
from planner.units import GIB

IMAGES = Input(name="x", value=TensorInput(shape=(32, 3, 224, 224)))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    facts = facts_of(two_steps(GIB, training(inputs=(IMAGES,))))
    save_plan(tmp_path / "plan.json", Plan(model=ModelChoice.of_trace(facts), gpu="rtx-4090"))
    return tmp_path / "plan.json"


def test_it_says_what_was_traced(file: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["fit", str(file), "--explain"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Fits on 1 × GeForce RTX 4090: needs 11.4")
    assert "net.py:Net · traced training, AdamW, 32 × 3 × 224 × 224 · 1 × GeForce RTX 4090" in said
    assert "source: traced with PyTorch 2.13.0" in said
    assert "Defaults used" not in said


def test_another_card_and_what_others_hold_can_be_asked_for(file: Path, capsys: pytest.CaptureFixture[str]):
    busy = file.with_name("busy.json")
    words = ["--gpu", "RTX 5090", "--set", "other_processes_bytes=30GiB", "--save", str(busy), "--check"]
    assert main(["fit", str(file), *words]) == 1
    assert capsys.readouterr().out.startswith("Does not fit on 1 × GeForce RTX 5090")
    assert load_plan(busy).workload.other_processes_bytes == 30 * GIB
    assert load_plan(busy).model.trace is not None


@pytest.mark.parametrize("words", [["--batch", "8"], ["--task", "training"], ["--weights", "nf4"]])
def test_the_workload_cannot_be_changed(file: Path, words: list[str], capsys: pytest.CaptureFixture[str]):
    assert main(["fit", str(file), *words]) == 2
    said = capsys.readouterr().err
    assert "error: workload options cannot change a traced module" in said
    assert "hint: Trace the module again with other options: gpu-planner trace --help" in said
