"""Vision transformers, against the networks that transformers builds."""

import pytest
from transformers_networks import assert_same

from planner.errors import ModelFileError
from planner.models.readers.config_json import read_config

SMALL = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 96}
DINO = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4}

CASES = [
    "ViTModel",
    "ViTForImageClassification",
    "DeiTForImageClassification",
    "DeiTForImageClassificationWithTeacher",
    "VivitModel",
    "VivitForVideoClassification",
    "Dinov2Model",
    "Dinov2ForImageClassification",
    "Dinov2WithRegistersForImageClassification",
    "BeitModel",
    "BeitForImageClassification",
]


@pytest.mark.parametrize("name", CASES)
def test_small_networks_hold_the_same_tensors(name: str) -> None:
    found = assert_same(name, **(DINO if name.startswith("Dino") else SMALL))
    assert found.kind == "vision-encoder"


@pytest.mark.oracle
@pytest.mark.parametrize("name", CASES)
def test_default_networks_hold_the_same_tensors(name: str) -> None:
    assert_same(name)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("ViTForImageClassification", SMALL | {"qkv_bias": False, "image_size": [64, 96], "num_labels": 10}),
        ("Dinov2Model", DINO | {"use_swiglu_ffn": True, "use_mask_token": False}),
        ("BeitForImageClassification", SMALL | {"use_relative_position_bias": True, "use_mean_pooling": False}),
        ("BeitModel", SMALL | {"use_shared_relative_position_bias": True, "layer_scale_init_value": 0.0}),
        ("BeitModel", SMALL | {"use_absolute_position_embeddings": True, "use_mask_token": True}),
    ],
)
def test_switches_are_followed(name: str, changes: dict[str, object]) -> None:
    assert_same(name, **changes)


# Published sizes with 1,000 and 400 classes.
PUBLISHED = {
    "vit-base": ("vit", 86_567_656, {"num_labels": 1000}),
    "vit-large": (
        "vit",
        304_326_632,
        {
            "num_labels": 1000,
            "hidden_size": 1024,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "intermediate_size": 4096,
        },
    ),
    "vivit": ("vivit", 88_954_000, {"num_labels": 400}),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_counts(name: str) -> None:
    model_type, count, sizes = PUBLISHED[name]
    base = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
    assert read_config({"model_type": model_type, **base, **sizes}, name).parameters == count


def test_positions_count_patches_and_tokens() -> None:
    assert assert_same("ViTModel", **SMALL).main.positions == 14 * 14 + 1
    assert assert_same("DeiTForImageClassification", **SMALL).main.positions == 14 * 14 + 2
    assert assert_same("VivitModel", **SMALL).main.positions == 16 * 14 * 14 + 1
    assert assert_same("Dinov2WithRegistersForImageClassification", **DINO).main.positions == 14 * 14 + 1 + 4


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"image_size": 8}, "smaller than a patch"),
        ({"image_size": [224]}, "must be a number or a list of two"),
        ({"model_type": "vivit", "tubelet_size": [2, 16]}, "must hold frames, height and width"),
    ],
)
def test_contradictions_are_named(changes: dict[str, object], problem: str) -> None:
    with pytest.raises(ModelFileError, match=problem):
        read_config({"model_type": "vit", **SMALL, **changes}, "test")
