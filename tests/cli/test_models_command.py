"""`gpu-planner models` as a person and a script use it."""

import json

import pytest

from planner.cli.main import main
from planner.models.architecture import Architecture
from planner.models.catalog import ModelRecord


@pytest.fixture
def said(capsys):
    """Return a way to run the command and read what it printed."""

    def run(*words, code=0):
        assert main(["models", *words]) == code
        printed = capsys.readouterr()
        return printed.err if code else printed.out

    return run


def test_words_find_models_by_name_alias_and_family(said):
    printed = said("llama", "8B")
    assert "meta-llama/Llama-3.1-8B " in printed
    assert "Qwen" not in printed


def test_json_is_a_list_of_records_that_read_back(said):
    records = [ModelRecord.model_validate(record) for record in json.loads(said("llama-3.1", "--json"))]
    assert "meta-llama/Llama-3.1-8B" in {record.id for record in records}


def test_one_model(said, golden):
    golden("models-show.txt", said("--show", "mistralai/Mixtral-8x7B-v0.1"))


def test_one_model_as_json_is_its_record(said):
    assert ModelRecord.model_validate_json(said("--show", "llama-3.1-8b", "--json")).parameters == 8_030_261_248


def test_a_file_of_ones_own(said, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(
        '{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,'
        '"num_attention_heads": 4, "vocab_size": 100}'
    )
    assert "llama" in said("--show", str(path))
    assert Architecture.model_validate_json(said("--show", str(path), "--json")).hidden == 64


def test_words_are_found_as_other_programs_write_them(said):
    assert "Qwen3-8B" in said("qwen3:8b")
    assert "Llama-3.1-8B" in said("llama3.1", "8b")


def test_what_can_be_read(said):
    names = said("--supported").split()
    assert len(names) >= 40
    assert names == json.loads(said("--supported", "--json"))


def test_models_without_a_formula_are_found_with_the_reason(said):
    assert (
        "DeepSeek-V4-Flash: its compressed attention and its hyper-connections are unknown to the formulas; "
        in said("v4")
    )
    assert said("wan2.2").endswith("a trace of a function that returns it with its inputs answers for it.\n")


def test_nothing_found_is_no_error(said):
    assert said("xyzzy").startswith("None of ")
    assert said("...").startswith("None of ")
    assert json.loads(said("xyzzy", "--json")) == []


def test_help(said):
    assert "--supported" in said("--help")


@pytest.mark.parametrize("words", [["--show", "nobody/nothing"], ["--show", "missing.json"], ["--frob"], ["--show"]])
def test_wrong_input(said, words):
    printed = said(*words, code=2)
    assert printed.startswith("error: ")
    assert "\nhint: " in printed
