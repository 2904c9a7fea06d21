"""`gpu-planner fit --advise` and `--solve`: what would help, and the largest numbers that fit."""

import json
import shlex
from pathlib import Path

import pytest
from recordings import training, two_steps

from planner.cli.advice import SOLVABLE
from planner.cli.main import main
from planner.plan.files import save_plan
from planner.plan.plan import ModelChoice, Plan
from planner.present.format import THIN
from planner.trace.analysis.memory import facts_of
from planner.units import GIB

MODEL = "meta-llama/Llama-3.1-8B"
TOO_MANY = [MODEL, "--batch", "16", "--gpu", "RTX 4090"]
LEARNING = ["meta-llama/Llama-3.2-1B", "--task", "training", "--micro-batch", "8", "--gpu", "RTX 4090"]


@pytest.fixture
def said(capsys):
    """Return a way to run the command and read what it printed, with thin spaces made plain."""

    def run(*words, code=0):
        assert main(["fit", *words]) == code
        printed = capsys.readouterr()
        return (printed.err if code == 2 else printed.out).replace(THIN, " ")

    return run


@pytest.mark.parametrize("width", [80, 100])
def test_advice_is_numbered_and_wrapped_not_cut(said, monkeypatch, width: int):
    monkeypatch.setenv("COLUMNS", str(width))
    advice = said(*LEARNING, "--advise").partition("What would help")[2].partition("\n\n")[0]
    assert "…" not in advice
    assert max(map(len, advice.splitlines()[:10])) <= width
    assert advice.count("\n1  ") == advice.count("\n  1  ") == 1


@pytest.fixture
def traced(tmp_path: Path) -> str:
    facts = facts_of(two_steps(GIB, training()))
    file = tmp_path / "plan.json"
    save_plan(file, Plan(model=ModelChoice.of_trace(facts), gpu="rtx-4090"))
    return str(file)


def test_the_whole_answer(said, golden):
    golden("fit-advise.txt", said(*LEARNING, "--advise", "--solve", "seq", "--solve", "gpu"))


def test_what_does_not_fit_is_advised_shortly_without_being_asked(said):
    text = said(*TOO_MANY)
    rows = text.partition("What would help:\n")[2].splitlines()
    assert rows[0].split() == ["#", "Change", "Saves", "Then", "Costs", "Risk", "Needs"]
    assert rows[5] == "(--advise shows all)"
    longer = said(*TOO_MANY, "--advise").partition("What would help:\n")[2].split("\n\n")[0]
    assert len(longer.splitlines()) > 5
    assert "shows all" not in longer


def test_the_options_below_the_advice_apply_it(said):
    command = [MODEL, "--task", "training", "--method", "qlora", "--micro-batch", "4", "--gpu", "RTX 4090"]
    advised, _, options = said(*command, "--advise").partition("As options:\n")
    rows = advised.partition("What would help:\n")[2].splitlines()[2:]
    lines = options.split("\n\n")[0].splitlines()
    assert len(lines) == len(rows) > 3
    for row, line in zip(rows[:3], lines, strict=False):
        assert "Fits, " in row
        assert said(*command, *shlex.split(line)[1:]).startswith("Fits on 1")


def test_what_fits_is_advised_only_when_asked(said):
    assert "What would" not in said(MODEL, "--gpu", "RTX 4090")
    assert "What would save memory or time:\n" in said(MODEL, "--gpu", "RTX 4090", "--advise")
    assert "What would save memory or time:\n" in said(MODEL, "--advise")


def test_warnings_stand_in_the_notes(said):
    assert "- The loss sets the peak: with a vocabulary of 128,256" in said(*LEARNING)


def test_json_has_advice_and_warnings_only_when_asked(said):
    plain, asked = json.loads(said(*LEARNING, "--json")), json.loads(said(*LEARNING, "--json", "--advise"))
    assert not {"advice", "warnings", "solved"} & set(plain)
    assert set(asked) == {*plain, "advice", "warnings"}
    best = asked["advice"][0]
    assert best["verdict"] == "fits"
    assert all(setting["field"].startswith(("workload.", "gpu", "count")) for setting in best["settings"])
    assert "plan" not in best
    assert asked["warnings"][0]["name"] == "loss-peak"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([*TOO_MANY, "--solve", "batch"], "Largest batch that fits: 4 (up to 8 may fit)."),
        ([*LEARNING, "--solve", "micro-batch"], "Largest micro-batch that fits: none, not even 1 fits."),
        (
            [MODEL, "--gpu", "h200-sxm-141gb", "--solve", "context"],
            "Longest context that fits: 131,072 tokens, the model's maximum, with a prompt of 4,096.",
        ),
        ([MODEL, "--gpu", "RTX 4090", "--solve", "count"], "Fewest GPUs of this kind: 1."),
        ([*LEARNING, "--solve", "gpu"], "Smallest GPU that fits: H100 NVL 94 GB."),
        (
            ["deepseek-ai/DeepSeek-V3", "--solve", "gpu"],
            "Smallest GPU that fits: none, no GPU in the catalog is large enough.",
        ),
        ([MODEL, "--solve", "batch"], "Largest batch that fits: none, the plan has no GPU."),
    ],
)
def test_a_number_is_solved_for(said, words, line):
    assert line in said(*words).splitlines()


def test_what_is_solved_for_is_in_the_json(said):
    (found,) = json.loads(said(*TOO_MANY, "--json", "--solve", "batch"))["solved"]
    assert (found["asked"], found["value"], found["verdict"], found["bounded_by"]) == ("batch", 4, "fits", "memory")


def test_layers_on_the_card_are_solved_for_in_llama_cpp_only(said):
    assert "none, only llama.cpp can keep layers in RAM" in said(MODEL, "--gpu", "RTX 4090", "--solve", "gpu-layers")
    there = said(MODEL, "--gpu", "RTX 4090", "--solve", "gpu-layers", "--profile", "llama.cpp", "--weights", "Q4_K_M")
    assert "Most layers that fit on the GPU: 33: all 32 and the output layer." in there


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([MODEL, "--solve", "colour"], f"Choose one of {', '.join(SOLVABLE)}."),
        ([MODEL, "--solve", "micro-batch"], "inference has no micro-batch"),
        ([MODEL, "--solve", "count"], "the plan has no GPU"),
    ],
)
def test_what_cannot_be_solved_for_is_said(said, words, message):
    assert message in said(*words, code=2)


def test_a_traced_module_has_nothing_to_vary(said, traced):
    assert "a traced module has no memory formula in which settings could be varied" in said(
        traced, "--solve", "batch", code=2
    )
    assert "No advice for a traced module: trace it again with other options." in said(traced, "--advise")
    assert "Smallest GPU that fits: " in said(traced, "--solve", "gpu")


def test_a_traced_module_may_need_another_card(said, traced):
    text = said(traced, "--set", "other_processes_bytes=18GiB")
    assert "What would help:" in text
    assert " instead " in text
