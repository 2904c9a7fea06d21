"""`fit --versus`: the plan beside another."""

import json

import pytest

from planner.cli.main import main
from planner.plan.files import save_plan
from planner.plan.plan import ModelChoice, Plan
from planner.workload.workload import Inference

MODEL = "meta-llama/Llama-3.1-8B"


def test_another_card_or_model_is_told_beside_the_plan(capsys):
    assert main(["fit", MODEL, "--gpu", "RTX 4090", "--versus", "2 x RTX 3090"]) == 0
    text = capsys.readouterr().out
    assert "Other: meta-llama/Llama-3.1-8B · inference, 1 × 4,096 tokens, bf16 · 2 × GeForce RTX 3090" in text
    assert "- Number of GPUs: 1 instead of 2" in text
    assert main(["fit", MODEL, "--gpu", "RTX 4090", "--versus", "meta-llama/Llama-3.2-1B"]) == 0
    assert "- Model: meta-llama/Llama-3.1-8B instead of meta-llama/Llama-3.2-1B" in capsys.readouterr().out


def test_another_plan_is_in_the_json(capsys, tmp_path):
    file = tmp_path / "other.json"
    save_plan(file, Plan(model=ModelChoice(id=MODEL), workload=Inference(batch=8), gpu="rtx-4090"))
    assert main(["fit", MODEL, "--gpu", "RTX 4090", "--json", "--versus", str(file)]) == 0
    found = json.loads(capsys.readouterr().out)
    other = found["versus"]["other"]["memory"]["total_bytes"]
    assert found["versus"]["total_difference_bytes"] == found["memory"]["total_bytes"] - other < 0
    assert found["versus"]["settings"] == [{"field": "batch", "value": 1, "other": 8}]


def test_what_cannot_run_has_no_table(capsys):
    assert main(["fit", MODEL, "--gpu", "RTX 4090", "--versus", "tpu-v4"]) == 0
    text = capsys.readouterr().out
    assert "Not supported on" in text
    assert "Difference" not in text


@pytest.mark.parametrize(("word", "said"), [("A100", "A100"), ("nobody/nothing", "nobody/nothing")])
def test_an_unknown_or_ambiguous_word_is_an_error(capsys, word, said):
    assert main(["fit", MODEL, "--gpu", "RTX 4090", "--versus", word]) == 2
    assert said in capsys.readouterr().err
