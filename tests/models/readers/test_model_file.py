import json
import os

import pytest
from made_files import TINY, tiny_tensors, write_model, write_safetensors, write_shards

from planner.errors import ModelFileError
from planner.models.readers import safetensors as checkpoint
from planner.models.readers.model_file import AdapterConfig, read_adapter, read_model_config, read_model_file
from planner.models.readers.safetensors import numbered_parts, read_checkpoint

HALVES = ({"a": ("F32", [2])}, {"b": ("F16", [3])})


def refusal(path) -> str:
    with pytest.raises(ModelFileError) as caught:
        read_checkpoint(path)
    assert caught.value.hint
    return caught.value.message


@pytest.mark.parametrize("named", ["model.safetensors.index.json", "model-00002-of-00002.safetensors"])
def test_an_index_and_any_part_mean_the_whole(tmp_path, named):
    write_shards(tmp_path, HALVES)
    found = read_checkpoint(tmp_path / named)
    assert [(tensor.name, tensor.bytes) for tensor in found.tensors] == [("a", 8), ("b", 6)]
    assert found.notes == ()


def test_parts_without_an_index_are_found_by_their_numbers(tmp_path):
    write_shards(tmp_path, HALVES).unlink()
    part = tmp_path / "model-00001-of-00002.safetensors"
    assert len(read_checkpoint(part).tensors) == 2
    write_safetensors(tmp_path / "model-00002-of-00002.safetensors", HALVES[0])
    assert "tensor 'a' is in another part as well" in refusal(part)
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    assert "of 2 files 'model-00002-of-00002.safetensors' is missing" in refusal(part)


@pytest.mark.parametrize("name", ["x-00003-of-00002.gguf", "x-00000-of-00002.gguf", "x-00001-of-99999.gguf"])
def test_impossible_part_numbers_are_refused(tmp_path, name):
    with pytest.raises(ModelFileError, match="numbers a part that cannot be"):
        numbered_parts(tmp_path / name)


def test_a_name_of_few_digits_is_one_file(tmp_path):
    assert numbered_parts(tmp_path / "x-1-of-2.gguf") == (tmp_path / "x-1-of-2.gguf",)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\xff\xfe", "is not text in UTF-8"),
        (b"[]", "has '[' instead of"),
        (b"{}", "weight_map: is missing or empty"),
        (b'{"weight_map": {}}', "weight_map: is missing or empty"),
        (b'{"weight_map": {"a": 1}}', "has no complete string"),
        (b'{"weight_map": {"a": "x.safetensors", "a": "x.safetensors"}}', "the key 'a' occurs twice"),
        (b'{"metadata": ' + b"[" * 90_000 + b"}", "nested too deep"),
        (b'{"weight_map": {"a": "../../etc/passwd"}}', "is not the name of a safetensors file beside the index"),
        (b'{"weight_map": {"a": "../x.safetensors"}}', "is not the name"),
        (b'{"weight_map": {"a": "/x.safetensors"}}', "is not the name"),
        (b'{"weight_map": {"a": "C:\\\\x.safetensors"}}', "is not the name"),
        (b'{"weight_map": {"a": "x\\u0000.safetensors"}}', "is not the name"),
        (b'{"weight_map": {"a": "pytorch_model.bin"}}', "is not the name"),
        (
            b'{"weight_map": {"a": "gone.safetensors", "b": "too.safetensors"}}',
            "of 2 files 'gone.safetensors' and 1 more are missing",
        ),
        (b'{"weight_map": {"a": "' + b"x" * 5000 + b'.safetensors"}}', "of 1 file 'xxx"),
    ],
    ids=range(15),
)
def test_indexes_that_cannot_be_are_refused(tmp_path, content, reason):
    index = tmp_path / "model.safetensors.index.json"
    index.write_bytes(content)
    assert reason in refusal(index)


def test_an_index_must_agree_with_its_files(tmp_path):
    index = write_shards(tmp_path, HALVES)
    stated = json.loads(index.read_text())
    stated["weight_map"]["c"] = "model-00001-of-00002.safetensors"
    index.write_text(json.dumps(stated))
    assert "weight_map: 'c' is not in model-00001-of-00002.safetensors" in refusal(index)
    del stated["weight_map"]["c"], stated["weight_map"]["b"]
    stated["weight_map"]["a"] = "model-00001-of-00002.safetensors"
    index.write_text(json.dumps(stated))
    write_safetensors(tmp_path / "model-00001-of-00002.safetensors", {"a": ("F32", [2]), "z": ("F32", [2])})
    found = read_checkpoint(index)
    assert [tensor.name for tensor in found.tensors] == ["a"]
    assert found.notes == ("1 tensors of the files are not in their index and not counted, such as 'z'",)


def test_too_many_tensors_are_refused(tmp_path, monkeypatch):
    index = write_shards(tmp_path, HALVES)
    monkeypatch.setattr(checkpoint, "MAX_TENSORS", 1)
    assert "has more than 1 keys" in refusal(index)
    monkeypatch.setattr(checkpoint, "MAX_TENSORS", 2)
    monkeypatch.setattr(checkpoint, "MAX_SHARDS", 1)
    assert "weight_map: names more than 1 files" in refusal(index)
    monkeypatch.setattr(checkpoint, "MAX_SHARDS", 2)
    monkeypatch.setattr(checkpoint, "MAX_TENSORS", 1)
    index.write_text('{"weight_map": {"a": "model-00001-of-00002.safetensors"}}')
    assert len(read_checkpoint(index).tensors) == 1
    write_safetensors(tmp_path / "model-00001-of-00002.safetensors", {"a": ("F32", [2]), "z": ("F32", [2])})
    assert "its files hold more than 1 tensors" in refusal(index)
    index.unlink()
    assert "there are more than 1 tensors" in refusal(tmp_path / "model-00001-of-00002.safetensors")


def test_a_truncated_part_is_named(tmp_path):
    index = write_shards(tmp_path, HALVES)
    part = tmp_path / "model-00002-of-00002.safetensors"
    os.truncate(part, part.stat().st_size - 1)
    message = refusal(index)
    assert message.startswith(str(part))
    assert "cut short" in message


@pytest.mark.parametrize("named", ["", "model.safetensors", "config.json"])
def test_a_folder_its_weights_and_its_configuration(tmp_path, named):
    folder = write_model(tmp_path / "m", tiny_tensors())
    found = read_model_file(folder / named)
    assert found.parameters == sum(part.elements for part in found.stored) or named == "config.json"
    assert found.container == (None if named == "config.json" else "safetensors")
    assert found.stored_as == "bf16"
    assert found.reader_notes == ()
    assert read_model_config(folder / named) == TINY


def test_a_folder_of_an_index(tmp_path):
    tensors = list(tiny_tensors().items())
    write_shards(tmp_path, (dict(tensors[:9]), dict(tensors[9:])))
    (tmp_path / "config.json").write_text(json.dumps(TINY))
    assert read_model_file(tmp_path).stored_bytes == 2 * read_model_file(tmp_path / "config.json").parameters
    assert read_model_config(tmp_path / "model.safetensors.index.json") == TINY


def test_a_folder_of_one_file_of_another_name(tmp_path):
    write_model(tmp_path, tiny_tensors())
    (tmp_path / "model.safetensors").rename(tmp_path / "weights.SAFETENSORS")
    assert read_model_file(tmp_path).container == "safetensors"
    write_safetensors(tmp_path / "other.safetensors", tiny_tensors())
    # Which of them is meant is not known; the configuration is.
    assert read_model_file(tmp_path).container is None
    (tmp_path / "config.json").unlink()
    with pytest.raises(ModelFileError, match=r"holds 2 models: other.safetensors, weights.SAFETENSORS"):
        read_model_file(tmp_path)
    with pytest.raises(ModelFileError, match="holds 2 models"):
        read_model_config(tmp_path)


@pytest.mark.parametrize("ending", ["bin", "pt", "pth", "ckpt", "PT"])
def test_pickles_are_never_opened(tmp_path, ending):
    file = tmp_path / f"pytorch_model.{ending}"
    file.write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    for path in (file, tmp_path):
        with pytest.raises(ModelFileError, match="is a pickle, which could run arbitrary code") as caught:
            read_model_file(path)
        assert "save_file" in caught.value.hint
    with pytest.raises(ModelFileError, match="is a pickle"):
        read_model_config(file)
    (tmp_path / "config.json").write_text(json.dumps(TINY))
    assert read_model_file(tmp_path).hidden == 64


def test_folders_without_a_model(tmp_path, monkeypatch):
    with pytest.raises(ModelFileError, match=r"without a config.json or weights"):
        read_model_file(tmp_path)
    with pytest.raises(ModelFileError, match=r"without a config.json"):
        read_model_config(tmp_path)
    (tmp_path / "config.json").symlink_to("config.json")
    with pytest.raises(ModelFileError, match=r"config.json: cannot be read|without a config.json"):
        read_model_file(tmp_path)
    (tmp_path / "config.json").unlink()
    (tmp_path / "model.safetensors").symlink_to("model.safetensors")
    with pytest.raises(ModelFileError, match=r"model.safetensors: cannot be read"):
        read_model_file(tmp_path)

    def closed(_):
        raise PermissionError(13, "Permission denied")

    (tmp_path / "model.safetensors").unlink()
    monkeypatch.setattr(os, "scandir", closed)
    with pytest.raises(ModelFileError, match=r"cannot be read \(Permission denied\)"):
        read_model_file(tmp_path)


LORA = {
    "peft_type": "LORA",
    "base_model_name_or_path": "meta-llama/Llama-3.1-8B",
    "r": 16,
    "lora_alpha": 32,
    "lora_dropout": 0.05,
    "target_modules": ["v_proj", "q_proj"],
    "bias": "none",
}


def write(folder, **changes):
    (folder / "adapter_config.json").write_text(json.dumps(LORA | changes))
    return folder


def test_an_adapter_and_its_weights(tmp_path):
    write(
        tmp_path,
        use_dora=True,
        use_rslora=True,
        rank_pattern={"k_proj": 8},
        modules_to_save=["lm_head"],
        layers_to_transform=[0, 2],
    )
    write_safetensors(tmp_path / "adapter_model.safetensors", {"a.lora_A.weight": ("F32", [16, 64])})
    assert read_adapter(tmp_path) == AdapterConfig(
        base="meta-llama/Llama-3.1-8B",
        rank=16,
        ranks=(("k_proj", 8),),
        alpha=32.0,
        dropout=0.05,
        targets=("q_proj", "v_proj"),
        layers=(0, 2),
        dora=True,
        rank_stabilised=True,
        modules_to_save=("lm_head",),
        parameters=16 * 64,
        stored_bytes=16 * 64 * 4,
        stored_dtype="fp32",
    )


@pytest.mark.parametrize(
    ("stated", "targets", "pattern"),
    [
        ("all-linear", "all-linear", None),
        (r".*\.(q|v)_proj", None, r".*\.(q|v)_proj"),
        (None, None, None),
        ([], (), None),
    ],
)
def test_targets_are_names_a_pattern_or_all(tmp_path, stated, targets, pattern):
    found = read_adapter(write(tmp_path, target_modules=stated, base_model_name_or_path=None, layers_to_transform=3))
    assert (found.targets, found.target_pattern) == (targets, pattern)
    assert (found.base, found.layers, found.parameters, found.stored_dtype) == (None, (3,), None, None)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"peft_type": "IA3"}, "is an adapter of type 'IA3'"),
        ({"peft_type": None}, "peft_type is missing"),
        ({"r": 0}, "r must be a whole number"),
        ({"r": None}, "r is missing"),
        ({"lora_dropout": 1}, "lora_dropout must be"),
        ({"target_modules": 3}, "target_modules must be a text"),
        ({"target_modules": [3]}, "target_modules must hold texts"),
        ({"rank_pattern": {"x": -1}}, "rank_pattern.x must be"),
        ({"bias": "some"}, "bias 'some' is not known"),
    ],
    ids=str,
)
def test_what_is_no_lora_adapter_is_refused(tmp_path, changes, reason):
    with pytest.raises(ModelFileError) as caught:
        read_adapter(write(tmp_path, **changes) / "adapter_config.json")
    assert reason in caught.value.message
    assert caught.value.hint


def test_a_folder_of_an_adapter_points_to_its_model(tmp_path):
    with pytest.raises(ModelFileError, match=r"contains a LoRA adapter of meta-llama/Llama-3.1-8B"):
        read_model_file(write(tmp_path))
    with pytest.raises(ModelFileError, match="an unnamed model"):
        read_model_file(write(tmp_path, base_model_name_or_path=None))
    (tmp_path / "config.json").write_text(json.dumps(TINY))
    assert read_model_file(tmp_path).hidden == 64
