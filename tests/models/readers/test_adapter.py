import json

import pytest
from made_files import TINY, write_safetensors

from planner.errors import ModelFileError
from planner.models.readers.adapter import AdapterConfig, read_adapter
from planner.models.readers.model_file import read_model_file

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
