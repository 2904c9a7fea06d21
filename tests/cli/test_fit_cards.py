"""`gpu-planner fit` on several cards: equal and unequal ones, what they share, and what does not go."""

import json

import pytest

from planner.cli.main import main
from planner.cli.user_catalog import named_cards
from planner.errors import SpecError
from planner.present.format import THIN
from planner.workload.parallel import CardCount

MODEL = "meta-llama/Llama-3.1-8B"
MOE = "mistralai/Mixtral-8x7B-v0.1"


@pytest.fixture
def said(capsys):
    """Return a way to run the command and read what it printed, on one line."""

    def run(*words, code=0):
        assert main(["fit", *words]) == code
        printed = capsys.readouterr()
        assert (printed.out == "") == (code == 2)
        return " ".join((printed.err if code == 2 else printed.out).replace(THIN, " ").split())

    return run


@pytest.fixture
def memory(capsys):
    """Return a way to run the command and read the memory of its JSON."""

    def run(*words):
        assert main(["fit", *words, "--json"]) == 0
        return json.loads(capsys.readouterr().out)["memory"]

    return run


def test_two_numbers_of_gpus_are_not_reconciled(said):
    text = said(MODEL, "--gpu", "4 x h100-sxm", "--count", "8", code=2)
    assert "--count: 8 contradicts the 4 GPUs of --gpu" in text
    assert "4 × H100" in said(MODEL, "--gpu", "4 x h100-sxm", "--count", "4")


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        ("--count 4 --tp 3", "4 GPUs are not a multiple of tensor 3", "or the number of GPUs"),
        ("--count 3 --tp 3", "32 attention heads are not divisible by 3", "Possible values: 2, 4, 8, 16, 32."),
        ("--count 33 --pp 33", "32 layers cannot fill 33 stages", ""),
        ("--count 2 --ep 2", "no routed experts", ""),
        ("--count 8 --dp 4", "data parallelism of 4 needs as many GPUs, not 8", ""),
        ("--count 2 --zero 3", "ZeRO shards training states", "pipeline or tensor"),
        ("--count 2 --tp 0", "must be at least 1", ""),
        ("--count 2 --cp 2 --attention eager", "needs ring attention with flash", "sdpa or flash"),
        ("--task training --count 2 --offload optimizer", "optimizer states needs ZeRO", "Set zero to 1, 2 or 3."),
        ("--task training --count 2 --offload parameters --zero 2", "ZeRO-3 or FSDP", "Set zero to 3."),
        ("--set parallel.pipeline_layers=16,17 --count 2 --pp 2", "have 33 layers in total, but the model has 32", ""),
    ],
)
def test_what_does_not_go_is_said(said, words, message, hint):
    text = said(MODEL, "--gpu", "h100-sxm", *words.split(), code=2)
    assert text.startswith("error:")
    assert message in text
    assert hint in text


def test_experts_go_by_whole_numbers(said):
    assert "8 experts are not divisible by 3" in said(MOE, "--gpu", "h100-sxm", "--count", "3", "--ep", "3", code=2)


def test_stages_are_rows_of_a_table(said):
    text = said(MODEL, "--task", "training", "--gpu", "h100-sxm", "--count", "4", "--pp", "4", "--zero", "0")
    assert "GPUs Layers Needs GiB Usable Free" in text
    assert text.count("1 × H100 SXM5 80 GB 8 ") == 4
    assert "4 pipeline stages" in text


def test_unequal_cards_are_rows_of_their_own(said):
    text = said(MODEL, "--weights", "Q8_0", "--gpu", "RTX 4090", "--gpu", "2 x RTX 3090", "--pp", "3")
    assert "1 × GeForce RTX 4090 + 2 × GeForce RTX 3090" in text
    assert "llama.cpp splits the layers in proportion to the GPUs' free memory" in text


def test_unequal_cards_that_share_matrices_are_decided_by_the_smallest(said, memory):
    words = (MODEL, "--gpu", "RTX 4090", "--gpu", "h100-sxm", "--tp", "2")
    assert "All GPUs hold the same amount, so the GPU with the least memory decides whether the workload fits." in said(
        *words
    )
    found = memory(*words)
    assert [row["gpu"] for row in found["per_gpu"]] == ["rtx-4090", "h100-sxm5-80gb"]
    assert found["fullest"] == 0


def test_the_table_of_cards_is_in_the_json(memory):
    found = memory(MODEL, "--weights", "F16", "--gpu", "RTX 4090", "--gpu", "RTX 3060 12 GB", "--pp", "2")
    rows = found["per_gpu"]
    assert [row["stage"] for row in rows] == [0, 1]
    assert sum(row["layers"] for row in rows) == 32
    assert rows[0]["layers"] > rows[1]["layers"]
    assert all(row["free_bytes"] == row["capacity_bytes"] - row["total_bytes"] for row in rows)
    assert found["total_bytes"] == rows[found["fullest"]]["total_bytes"]


@pytest.mark.parametrize(
    ("words", "phrase"),
    [
        ("--count 8 --zero 3", "FSDP"),
        ("--count 8 --zero 2 --offload optimizer", "ZeRO-2, optimizer in RAM"),
        (
            "--count 8 --tp 2 --cp 2 --profile megatron --zero 1",
            "distributed optimizer, tensor parallel 2, context parallel 2",
        ),
        (
            "--count 16 --tp 4 --pp 2 --set parallel.sequence=true",
            "tensor parallel 4, 2 pipeline stages, sequence parallel",
        ),
    ],
)
def test_the_answer_names_what_is_shared(said, words, phrase):
    assert phrase in said(MODEL, "--task", "training", "--gpu", "h100-sxm", *words.split())


def test_cards_that_must_share_do_so_as_their_software_would(said):
    text = said("Qwen/Qwen2.5-14B", "--profile", "vllm", "--gpu", "2 x RTX 3090")
    assert text.startswith("Fits on 2 × GeForce RTX 3090: each needs ")
    assert "Assumed: tensor parallelism over 2 GPUs, because a full copy needs " in text
    assert "Check that vLLM is configured for it." in " ".join(text.split())
    assert "Set --tp, --pp or --dp to change it." in text
    assert "--dp" not in text.partition("Defaults used:")[2]


def test_cards_of_which_one_is_enough_are_replicas(said):
    text = said(MODEL, "--gpu", "2 x H100 SXM", "--task", "training", "--method", "qlora")
    assert "Each GPU holds the whole model, because one is enough. Set --zero, --tp or --dp to change it." in text


@pytest.mark.parametrize("words", ["--dp 2", "--tp 1", "--sharing manual"])
def test_replicas_that_were_asked_for_do_not_fit_and_are_told_to_share(said, words):
    text = said("Qwen/Qwen2.5-14B", "--profile", "vllm", "--gpu", "2 x RTX 3090", *words.split())
    assert text.startswith("Does not fit on 2 × GeForce RTX 3090")
    assert "Chosen:" not in text
    assert "Tensor parallelism over the 2 GPUs" in text.partition("What would help:")[2]


def test_the_choice_is_saved_as_left_open_and_told_in_json(capsys, tmp_path):
    file = tmp_path / "plan.json"
    assert main(["fit", "Qwen/Qwen2.5-14B", "--gpu", "2 x RTX 3090", "--save", str(file), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["plan"]["workload"]["parallel"]["sharing"] == "auto"
    assert (told["workload"]["parallel"]["pipeline"], told["sharing"]["scheme"]) == (2, "layer split")
    assert told["sharing"]["as_replicas"]["verdict"] == "does-not-fit"
    assert json.loads(file.read_text(encoding="utf-8"))["workload"]["parallel"]["sharing"] == "auto"
    assert main(["fit", str(file), "--tp", "2", "--save", str(file), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["workload"]["parallel"]["tensor"], told["sharing"]) == (2, None)
    assert main(["fit", str(file), "--sharing", "auto", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sharing"]["scheme"] == "layer split"


def test_cards_are_named_with_their_number(catalog):
    named = named_cards(("RTX 4090", "2 x RTX 3090", "3× h100-sxm"), catalog)
    assert named[:2] == (CardCount(id="rtx-4090"), CardCount(id="rtx-3090", count=2))


def test_no_cards_are_none(catalog):
    with pytest.raises(SpecError, match="0 GPUs"):
        named_cards(("0 x RTX 3090",), catalog)
