"""`gpu-planner fit --preset NAME` and `--list-presets`."""

import json

import pytest

from planner import load_presets
from planner.cli.main import main


@pytest.fixture
def said(capsys):
    """Return a way to run the command and read what it printed."""

    def run(*words, code=0):
        assert main(["fit", *words]) == code
        printed = capsys.readouterr()
        return printed.err if code else printed.out

    return run


def test_they_are_listed_with_what_they_run(said):
    lines = said("--list-presets").splitlines()
    assert len(lines) == 1 + len(load_presets())
    assert any("zephyr-7b-sft" in line and "8 × A100 SXM4 80 GB" in line for line in lines)


def test_the_list_as_json_can_be_read_again(said):
    listed = json.loads(said("--list-presets", "--json"))
    assert [record["id"] for record in listed] == [preset.id for preset in load_presets()]
    assert all(record["sources"] and record["workload"] for record in listed)


def test_options_change_a_preset_and_its_source_is_told(said):
    printed = said("--preset", "unsloth-llama-3.1-8b", "--seq", "4096")
    assert "2 × 4,096 tokens" in printed
    assert "on 1 × Tesla T4" in printed
    assert "    https://github.com/unslothai/notebooks" in printed


def test_a_preset_for_another_model(said):
    answer = json.loads(said("Qwen/Qwen3-8B", "--preset", "axolotl-llama-3-qlora", "--gpu", "RTX 4090", "--json"))
    assert answer["plan"]["model"]["id"] == "Qwen/Qwen3-8B"
    assert answer["workload"]["lora"]["rank"] == 32
    assert answer["preset"]["id"] == "axolotl-llama-3-qlora"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--preset", "llama-server"], "for any model"),
        (["--preset", "nothing"], "no preset is called"),
        (["--preset", "trl-sft", "--workload", "other.json"], "cannot be combined with --workload"),
    ],
)
def test_what_cannot_be_is_said(said, words, reason):
    assert reason in said(*words, code=2)


def test_a_training_file_and_a_preset_are_too_much(said, tmp_path):
    file = tmp_path / "train.yml"
    file.write_text("base_model: meta-llama/Llama-3.1-8B\nadapter: lora\nlora_r: 8\n", encoding="utf-8")
    assert "training file" in said(str(file), "--preset", "trl-sft", code=2)
