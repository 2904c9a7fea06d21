"""`gpu-planner fit` for a model_type that no formula covers: transformers builds the network, and its run is traced."""

import json

import pytest

from planner.cli.main import main
from planner.plan.files import load_plan
from planner.trace import run
from planner.units import MIB

APERTUS = {
    "model_type": "apertus",
    "architectures": ["ApertusForCausalLM"],
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "vocab_size": 1000,
    "torch_dtype": "bfloat16",
}


@pytest.fixture
def config(tmp_path):
    """Return a way to write a config.json with some fields."""

    def write(**fields):
        (tmp_path / "config.json").write_text(json.dumps(fields), encoding="utf-8")
        return str(tmp_path / "config.json")

    return write


def test_it_is_traced_and_the_answer_says_so(config, tmp_path, capsys):
    saved = tmp_path / "plan.json"
    words = ["--gpu", "2 x RTX 4090", "--context", "64", "--set", "other_processes_bytes=1GiB", "--save", str(saved)]
    assert main(["fit", config(**APERTUS), *words]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("Fits on 2 × GeForce RTX 4090")
    assert "traced inference, batch 1, 64 tokens, bf16" in said
    assert "model_type 'apertus' is not one of the" in said
    assert "built the network from its configuration, without weights, and its run was traced." in said
    plan = load_plan(saved)
    assert (plan.count, plan.workload.other_processes_bytes) == (2, 1024 * MIB)
    layer = 4 * 64 * 64 + 2 * 64 * 128 + 2 * 64 + 2 * 16 + 2  # its activation has two learned numbers
    assert plan.model.trace.parameters == 2 * 1000 * 64 + 64 + 2 * layer


def test_a_type_that_transformers_does_not_know_either_is_refused_with_both_reasons(config, capsys):
    assert main(["fit", config(model_type="frobnicate")]) == 2
    printed = capsys.readouterr()
    error, hint = printed.err.split("\nhint: ")
    assert error.startswith("error: ")
    assert "model_type 'frobnicate' is not one of the" in error
    assert "does not support the model type 'frobnicate'" in error
    assert "--supported" in hint
    assert printed.out == ""


def test_without_pytorch_the_answer_names_what_to_install(config, capsys, monkeypatch):
    monkeypatch.setattr(run.importlib.util, "find_spec", lambda name: None)
    assert main(["fit", config(**APERTUS)]) == 2
    said = capsys.readouterr().err
    assert "tracing needs PyTorch and Hugging Face transformers; install it with: " in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--weights", "nf4"], "--weights"),
        (["--gpu", "RTX 4090", "--gpu", "RTX 3090"], "GPUs of several kinds cannot be traced together"),
        (["--preset", "unsloth-llama-3.1-8b"], "model_type 'apertus' is not one of the"),
    ],
)
def test_what_a_trace_cannot_answer_is_refused(config, capsys, words, message):
    assert main(["fit", config(**APERTUS), *words]) == 2
    assert message in capsys.readouterr().err


def test_a_run_that_fails_says_where(config, capsys):
    fields = {"model_type": "xmod", "num_hidden_layers": 1, "hidden_size": 16, "num_attention_heads": 2}
    assert main(["fit", config(**fields, intermediate_size=16, vocab_size=50), "--context", "8"]) == 2
    assert "Input language unknown" in capsys.readouterr().err
