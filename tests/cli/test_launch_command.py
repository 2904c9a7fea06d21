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
    assert "Beside it on each card: Qwen/Qwen3-0.6B in vLLM" in said
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
