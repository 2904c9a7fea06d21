import json
from pathlib import Path

import pytest
from made_files import tiny_tensors, write_gguf, write_safetensors

from planner.errors import ModelFileError, SpecError
from planner.models.catalog import ModelCatalog, load_models
from planner.models.load import load_config, load_model
from planner.paths import catalog_dir

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 100,
}


@pytest.fixture(scope="module")
def catalog() -> ModelCatalog:
    return load_models(catalog_dir() / "models")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "My-Model"
    found.mkdir()
    (found / "config.json").write_text(json.dumps(LLAMA))
    monkeypatch.chdir(tmp_path)
    return found


def test_the_configuration_of_a_model_without_a_formula_is_that_of_the_catalog(catalog: ModelCatalog) -> None:
    name, config = load_config("resnet50", catalog)
    assert (name, config["model_type"]) == ("microsoft/resnet-50", "resnet")


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_name_is_no_folder(catalog: ModelCatalog, text: str) -> None:
    with pytest.raises(SpecError, match="no model is named"):
        load_model(text, catalog)


def test_a_name_of_the_catalog(catalog: ModelCatalog) -> None:
    loaded = load_model("llama-3.1-8b", catalog)
    assert loaded == ("meta-llama/Llama-3.1-8B", catalog.model("meta-llama/Llama-3.1-8B"), None)


@pytest.mark.parametrize("text", ["My-Model", "./My-Model", "My-Model/", "My-Model/config.json"])
def test_a_file_or_folder_takes_the_name_of_its_folder(catalog: ModelCatalog, folder: Path, text: str) -> None:
    loaded = load_model(text, catalog)
    assert loaded.name == folder.name
    assert loaded.architecture.hidden == 64
    assert loaded.path is not None


def test_a_file_of_another_name_takes_its_own(catalog: ModelCatalog, folder: Path) -> None:
    other = folder / "tiny.json"
    other.write_text(json.dumps(LLAMA))
    assert load_model(str(other), catalog).name == "tiny"


def test_the_catalog_wins_over_a_folder_unless_a_path_is_written(catalog: ModelCatalog, folder: Path) -> None:
    folder.rename(folder.parent / "gpt2")
    assert load_model("gpt2", catalog).path is None
    assert load_model("./gpt2", catalog).architecture.hidden == 64


def test_weights_take_their_own_name_without_the_number_of_their_part(catalog: ModelCatalog, folder: Path) -> None:
    write_safetensors(folder / "model.safetensors", tiny_tensors())
    tiny = LLAMA | {"intermediate_size": 96, "num_key_value_heads": 2, "vocab_size": 128}
    (folder / "config.json").write_text(json.dumps(tiny))
    loaded = load_model("My-Model/model.safetensors", catalog)
    assert (loaded.name, loaded.architecture.stored_as) == ("My-Model", "bf16")
    assert load_model(str(write_gguf(folder / "Tiny-00001-of-00001.gguf")), catalog).name == "Tiny"
    link = folder.parent / "link.gguf"
    link.symlink_to(folder / "Tiny-00001-of-00001.gguf")
    assert load_model("link.gguf", catalog).name == "link"


def test_a_configuration_comes_from_the_catalog_or_from_a_file(catalog: ModelCatalog, folder: Path) -> None:
    name, config = load_config("gpt2", catalog)
    assert config == catalog.record(name).config
    assert load_config("./My-Model", catalog) == ("My-Model", LLAMA)
    name, config = load_config(str(write_gguf(folder / "tiny.gguf")), catalog)
    assert (name, config["model_type"]) == ("tiny", "llama")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("hf:../etc/passwd", "not a model name of the Hugging Face Hub"),
        ("model.safetensors", "cannot be read (No such file"),
        ("weights/model-Q4_K_M.gguf", "cannot be read (No such file"),
        ("pytorch_model.bin", "is a pickle, which could run arbitrary code"),
        ("/nowhere/config.json", "cannot be read"),
    ],
)
def test_what_cannot_be_read_says_what_to_do(catalog: ModelCatalog, text: str, reason: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        load_model(text, catalog)
    assert reason in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("text", ["no-such-model", "x" * 5000, "a\0b"])
def test_neither_a_name_nor_a_file(catalog: ModelCatalog, text: str) -> None:
    with pytest.raises(SpecError, match="no model is called"):
        load_model(text, catalog)
