import json

import pytest

from planner.cli.main import main

WORDS = ("launch", "meta-llama/Llama-3.1-8B", "--gpu", "l40s", "--for", "vllm")


def test_the_files_are_printed_with_what_they_do_not_express(capsys):
    assert main(WORDS) == 0
    out = capsys.readouterr().out
    assert out.startswith("# run.sh\n#!/usr/bin/env bash\n")
    assert "Not in the files of vLLM:\n  gpu = L40S: the script runs on the GPUs of its machine\n" in out


def test_files_are_written_once_and_read_by_fit(capsys, tmp_path):
    words = (*WORDS, "--on", "kubernetes", "-o", str(tmp_path / "run"))
    assert main(words) == main(words) == 0
    capsys.readouterr()
    assert main(("fit", str(tmp_path / "run" / "deployment.yaml"), "--json")) == 0
    read = json.loads(capsys.readouterr().out)
    assert (read["plan"]["gpu"], read["plan"]["model"]["id"]) == ("l40s", "meta-llama/Llama-3.1-8B")
    assert main((*words, "--context", "2048")) == 2
    assert "exists with another content" in capsys.readouterr().err


def test_the_result_is_json(capsys):
    assert main((*WORDS, "--json")) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["version"] == "vllm==0.33.0"
    assert {row["key"] for row in result["settings"]} > {"--max-model-len", "--gpu-memory-utilization"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (WORDS[:-2], "no program is given"),
        ((*WORDS[:-1], "liger"), "it is a set of kernels"),
        ((*WORDS, "--on", "moon"), "no place is called 'moon'"),
        ((*WORDS, "--task", "training"), "the plan is for training"),
    ],
)
def test_what_cannot_be_written_is_refused(capsys, words, message):
    assert main(words) == 2
    assert message in capsys.readouterr().err


def test_models_on_the_same_cards_have_fractions_and_ports_of_their_own(capsys, tmp_path):
    plan = tmp_path / "small.json"
    words = ("Qwen/Qwen3-0.6B", "--gpu", "h100-sxm5-80gb", "--profile", "vllm", "--context", "2048")
    assert main(("fit", *words, "--save", str(plan))) == 0
    capsys.readouterr()
    both = ("meta-llama/Llama-3.1-8B", "--gpu", "h100-sxm5-80gb", "--profile", "vllm", "--beside", str(plan))
    assert main(("fit", *both)) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Beside it on each GPU: Qwen/Qwen3-0.6B in vLLM" in said
    assert "isolate neither memory nor time" in said
    assert main(("fit", *both, "--json")) == 0
    beside = json.loads(capsys.readouterr().out)["beside"]
    assert beside[0]["model"] == "Qwen/Qwen3-0.6B"
    assert main(("launch", *both, "--for", "vllm", "-o", str(tmp_path / "run"))) == 0
    own, other = ((tmp_path / "run" / name).read_text() for name in ("run.sh", "beside-1/run.sh"))
    assert f"--gpu-memory-utilization {beside[0]['fraction']:g}" in other
    assert "--port 8001" in other
    assert "--port" not in own
    capsys.readouterr()
    assert main(("launch", *both, "--for", "vllm", "--json")) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2


def test_a_neighbour_without_a_program_is_refused(capsys, tmp_path):
    plan = tmp_path / "open.json"
    assert main(("fit", "Qwen/Qwen3-0.6B", "--gpu", "l40s", "--save", str(plan))) == 0
    assert main(("launch", "meta-llama/Llama-3.1-8B", "--gpu", "l40s", "--for", "vllm", "--beside", str(plan))) == 2
    assert "no files are written for the program of Qwen/Qwen3-0.6B" in capsys.readouterr().err


SERVED = ("meta-llama/Llama-3.1-8B", "--gpu", "h100-sxm5-80gb", "--profile", "vllm")
ALIGNED = ("Qwen/Qwen3-8B", "--gpu", "h100-sxm5-80gb", "--task", "training", "--align")


@pytest.mark.parametrize("command", ["fit", "launch", "cost"])
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*SERVED, "--acceptance", "0.5"), "error: --acceptance: it has no effect without a draft"),
        ((*SERVED, "--lora-slots", "2", "--lora-rank", "700"), "error: vLLM serves adapters up to rank 512, not 700"),
        (
            (*SERVED, "--lora-slots", "2", "--lora-targets", "qkv"),
            "error: --lora-targets: no layer of the model is named",
        ),
        ((*SERVED, "--common-prefix", "9999"), "error: --common-prefix: a shared prefix of 9,999 tokens is longer"),
        ((*SERVED, "--draft-model", "no/such"), "error: --draft-model: no model is called 'no/such'"),
        ((*SERVED, "--beside", "no.json"), "error: --beside: no.json: cannot be read"),
        ((*ALIGNED, "dpo", "--group", "4"), "error: --group: it has no effect here: GRPO alone compares a group"),
        ((*ALIGNED, "none", "--reward", "model"), "error: --reward: it has no effect without an objective"),
        (
            (*ALIGNED, "dpo", "--seq", "64", "--completion", "64"),
            "error: --completion: a completion of 64 tokens leaves",
        ),
    ],
)
def test_what_an_engine_or_objective_would_ignore_is_refused(capsys, command, words, message):
    further = {"launch": ("--for", "vllm" if words[0] == SERVED[0] else "trl"), "cost": ("--samples", "100")}
    assert main((command, *words, *further.get(command, ()))) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("draft", "hint"),
    [
        ("llama3.2:1b", "--draft-model meta-llama/Llama-3.2-1B."),
        ("llama-3.2-1c", "A model that drafts is named by --draft-model. Close names: "),
        ("eagel", "Close names: eagle, eagle3."),
    ],
)
def test_a_model_that_is_named_as_a_kind_of_draft_is_led_to_its_option(capsys, draft, hint):
    assert main(("fit", *SERVED, "--draft", draft)) == 2
    printed = capsys.readouterr().err
    assert "choose model, mtp, eagle, eagle3 or ngram" in printed
    assert hint in " ".join(printed.split())
