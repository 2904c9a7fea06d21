"""`gpu-planner fit` as a person and a script use it."""

import json
import os
import subprocess
import sys

import pytest

from planner.cli.main import main
from planner.plan.files import load_plan
from planner.present.format import THIN

MODEL = "meta-llama/Llama-3.1-8B"


@pytest.fixture
def said(capsys):
    """Return a way to run the command and read what it printed, with thin spaces made plain."""

    def run(*words, code=0):
        assert main(["fit", *words]) == code
        printed = capsys.readouterr()
        assert (printed.out == "") == (code == 2)
        return (printed.err if code == 2 else printed.out).replace(THIN, " ")

    return run


@pytest.fixture
def config(tmp_path):
    """Return a small model's folder with its config.json."""
    folder = tmp_path / "tiny-llama"
    folder.mkdir()
    fields = {
        "model_type": "llama",
        "hidden_size": 256,
        "intermediate_size": 1024,
        "num_hidden_layers": 4,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "vocab_size": 1000,
        "max_position_embeddings": 512,
    }
    (folder / "config.json").write_text(json.dumps(fields))
    return folder / "config.json"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("fit-inference.txt", [MODEL, "--gpu", "RTX 4090"]),
        ("fit-without-card.txt", [MODEL, "--weights", "nf4", "--batch", "4"]),
        ("fit-training.txt", [MODEL, "--task", "training", "--gpu", "h100-sxm", "--explain"]),
        ("fit-unsupported.txt", [MODEL, "--gpu", "tpu-v5e"]),
        ("fit.json", [MODEL, "--gpu", "RTX 4090", "--json"]),
    ],
)
def test_the_whole_answer(said, golden, name, words):
    golden(name, said(*words))


def test_the_answer_comes_first(said):
    first = said(MODEL, "--gpu", "RTX 4090").splitlines()[0]
    assert first.startswith("Fits on 1 × GeForce RTX 4090: needs ")
    assert first.endswith(" free.")


def test_what_does_not_fit_says_by_how_much(said):
    assert "4.62 GiB short." in " ".join(said(MODEL, "--gpu", "RTX 3060 12 GB").split())


def test_help_teaches(said, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    printed = said("--help-all")
    for word in ("--kv-cache", "[adamw]", "examples:", "exit codes:", "--workload FILE"):
        assert word in printed


@pytest.mark.parametrize(("gpu", "code"), [("RTX 4090", 0), ("RTX 3060 12 GB", 1), ("tpu-v5e", 1)])
def test_check_tells_by_the_exit_code(said, gpu, code):
    said(MODEL, "--gpu", gpu, "--check", code=code)
    said(MODEL, "--gpu", gpu)


def test_json_terms_add_up(said):
    memory = json.loads(said(MODEL, "--gpu", "RTX 4090", "--json"))["memory"]
    assert sum(term["bytes"] for term in memory["terms"]) == memory["total_bytes"]
    assert memory["verdict"] == "fits"


def test_json_without_a_card_names_the_smallest_that_fit(said):
    result = json.loads(said(MODEL, "--json"))
    assert result["memory"]["verdict"] is None
    assert result["smallest_fits"]


def test_a_plan_is_saved_opened_and_changed(said, tmp_path):
    path = tmp_path / "plan.json"
    said(MODEL, "--gpu", "RTX 4090", "--count", "2", "--batch", "4", "--save", str(path))
    plan = load_plan(path)
    assert (plan.gpu, plan.count, plan.workload.batch) == ("rtx-4090", 2, 4)
    same = said(str(path))
    assert "4 × 4,096 tokens" in same
    assert "2 × GeForce RTX 4090: each needs" in same
    changed = said(str(path), "--batch", "1", "--gpu", "h100-sxm", "--count", "1", "--save", str(path))
    assert "1 × H100 SXM5" in changed
    assert load_plan(path).workload.batch == 1


def test_a_config_and_its_folder_are_read(said, config):
    for word in (str(config), str(config.parent)):
        assert "tiny-llama · inference, 1 × 512 tokens" in said(word)


def test_a_plan_for_a_config_carries_the_model(said, config, tmp_path):
    path = tmp_path / "plan.json"
    first = said(str(config), "--gpu", "RTX 4090", "--save", str(path))
    config.unlink()
    assert said(str(path)).splitlines()[0] == first.splitlines()[0]


def test_a_workload_file(said, tmp_path):
    path = tmp_path / "workload.json"
    path.write_text('{"task": "training", "optimizer": "sgd", "sequence_length": 512}')
    assert "full fine-tuning, SGD, 2 × 512 tokens" in said(MODEL, "--workload", str(path), "--micro-batch", "2")


def test_nothing_but_plans_is_overwritten(said, config):
    before = config.read_text()
    assert "exists and is not a plan" in said(MODEL, "--save", str(config), code=2)
    assert config.read_text() == before


FILES = {
    "garbage.json": b"\x80\xff\x00{",
    "newer.json": b'{"schema_version": 99}',
    "broken.json": b'{"schema_version": 1, "model": ',
    "field.json": b'{"schema_version": 1, "model": {"id": "x"}, "colour": 1}',
    "stranger.json": b'{"schema_version": 1, "model": {"id": "nobody/nothing"}}',
    "card.json": b'{"schema_version": 1, "model": {"id": "meta-llama/Llama-3.1-8B"}, "gpu": "gtx-9999"}',
    "deep.json": b'{"schema_version": ' + b"[" * 100_000,
}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "no model is given"),
        ("nobody/nothing", "no model is called 'nobody/nothing'"),
        ("llama", "no model is called 'llama'"),
        ("MODEL --gpu GTX-9999", "no accelerator is called 'GTX-9999'"),
        ("MODEL --gpu A100", "'A100' can mean 4: a100-"),
        ("MODEL --count 0", "--count: must be at least 1, not 0"),
        ("MODEL --count many", "--count: 'many' is not a whole number"),
        ("MODEL --batch 1.5", "--batch: '1.5' is not a whole number"),
        ("MODEL --context 2048 --prompt 4096", "--prompt: 4,096 tokens exceed the context of 2,048"),
        ("stabilityai/stable-diffusion-xl-base-1.0 --context 77", "--context: the inputs of this network have no"),
        ("google/vit-base-patch16-224 --task training --seq 512", "--seq: the inputs of this network have no"),
        ("MODEL --tp 2", "parallel: 1 GPU is not a multiple of tensor 2"),
        ("MODEL --tp 3 --count 3", "--tp: 32 attention heads are not divisible by 3"),
        ("MODEL --image-size 512", "--image-size: llama does not accept images"),
        ("MODEL --solve micro-batch --gpu h100-sxm", "--solve: inference has no micro-batch"),
        ("MODEL --set colour=red", "colour: there is no such field"),
        ("MODEL --optimizer adamw", "--optimizer: applies to training"),
        ("MODEL --check", "--check: needs a GPU to check against"),
        ("MODEL --workload missing.json", "missing.json: cannot be read"),
        ("MODEL --save missing/plan.json", "cannot be written"),
        ("missing.json", "missing.json: cannot be read"),
        ("garbage.json", "garbage.json: is not JSON: it is not text in UTF-8"),
        ("newer.json", "newer.json: made by a newer version"),
        ("broken.json", "broken.json: is not JSON"),
        ("deep.json", "deep.json: is nested too deep"),
        ("field.json", "colour: there is no such field"),
        ("stranger.json", "'nobody/nothing'"),
        ("card.json", "'gtx-9999'"),
        ("folder", "without a config.json"),
        ("loop.json", "loop.json: cannot be read"),
        ("/dev/zero", "is not a regular file"),
        ("hf:no/such/name", "is not a model name of the Hugging Face Hub"),
    ],
)
def test_wrong_input_is_named_with_a_hint(said, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop.json").symlink_to("loop.json")
    printed = said(*words.replace("MODEL", MODEL).split(), code=2)
    error, hint = printed.split("\nhint: ")
    assert error.startswith("error: ")
    assert message in error
    assert len(hint.strip()) > 5


def test_a_name_that_no_file_system_takes(said):
    assert "no model is called" in said("x" * 5000, code=2)


def _run(*words, **variables):
    return subprocess.run(
        [sys.executable, "-m", "planner", *words],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, **variables},
        check=False,
    )


def test_the_module_is_the_command():
    run = _run("fit", MODEL, "--gpu", "RTX 3060 12 GB", "--check")
    assert (run.returncode, run.stderr) == (1, "")
    assert run.stdout.startswith("Does not fit on 1 × ")


def test_errors_leave_standard_output_clean():
    run = _run("fit", "nobody/nothing")
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("error: ")


def test_a_terminal_without_unicode():
    run = _run("fit", MODEL, "--gpu", "RTX 4090", PYTHONIOENCODING="ascii")
    assert run.returncode == 0
    assert run.stdout.isascii()
    assert run.stdout.startswith("Fits on 1 x GeForce RTX 4090: needs ")
