"""`gpu-planner fit` with the training files of other programs."""

import json

import pytest

from planner.cli.main import main

RECIPE = """\
base_model: meta-llama/Llama-3.1-8B
sequence_len: 1024
micro_batch_size: 2
gradient_checkpointing: true
optimizer: adamw_bnb_8bit
learning_rate: 2e-5
torch_compile: true
"""


@pytest.fixture
def recipe(tmp_path):
    file = tmp_path / "full.yml"
    file.write_text(RECIPE)
    return file


def test_the_file_names_the_model(recipe, capsys):
    assert main(["fit", str(recipe), "--gpu", "h100-sxm"]) == 0
    printed = capsys.readouterr().out
    assert "meta-llama/Llama-3.1-8B · full fine-tuning" in printed
    assert "Read from full.yml (axolotl): base_model meta-llama/Llama-3.1-8B" in printed
    assert "Not counted: torch_compile" in printed


def test_each_key_is_explained(recipe, capsys):
    assert main(["fit", "Qwen/Qwen2.5-0.5B", "--workload", str(recipe), "--explain"]) == 0
    printed = capsys.readouterr().out
    assert "    micro_batch_size: 2 → Micro-batch size" in printed
    assert "    learning_rate: does not change memory" in printed
    assert "Qwen/Qwen2.5-0.5B · full fine-tuning" in printed


def test_options_change_it_and_json_has_the_account(recipe, capsys):
    assert main(["fit", "Qwen/Qwen2.5-0.5B", "--workload", str(recipe), "--micro-batch", "4", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["workload"]["micro_batch"] == 4
    assert answer["workload"]["optimizer"] == "adamw-8bit"
    assert answer["recipe"]["format"] == "axolotl"
    assert answer["recipe"]["read"][0] == {"key": "base_model", "value": "meta-llama/Llama-3.1-8B", "field": "model"}


def test_cards_come_from_the_file_unless_they_are_counted(tmp_path, capsys):
    file = tmp_path / "ddp.yaml"
    file.write_text("distributed_type: MULTI_GPU\nnum_processes: 4\nmixed_precision: bf16\n")
    for more, count in (([], 4), (["--count", "2"], 2)):
        assert main(["fit", "Qwen/Qwen2.5-0.5B", "--workload", str(file), "--json", *more]) == 0
        assert json.loads(capsys.readouterr().out)["plan"]["count"] == count


def test_two_training_files_or_no_model_are_refused(recipe, tmp_path, capsys):
    assert main(["fit", str(recipe), "--workload", str(recipe)]) == 2
    assert "there are two training files" in capsys.readouterr().err
    file = tmp_path / "ddp.yaml"
    file.write_text("distributed_type: MULTI_GPU\n")
    assert main(["fit", "--workload", str(file)]) == 2
    assert "names no model" in capsys.readouterr().err


def test_a_broken_file_is_told(tmp_path, capsys):
    file = tmp_path / "broken.yml"
    file.write_text("base_model: x\nbase_model: y\n")
    assert main(["fit", str(file)]) == 2
    assert "the key 'base_model' occurs a second time in line 2" in capsys.readouterr().err
