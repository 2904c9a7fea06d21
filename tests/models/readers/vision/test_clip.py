"""CLIP and SigLIP: both towers together, or one of them alone."""

import pytest

from planner.models.readers.config_json import read_config

TEXT = {
    "model_type": "clip_text_model",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 99,
    "max_position_embeddings": 77,
}
VISION = {
    "model_type": "clip_vision_model",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 28,
    "patch_size": 14,
}


def test_clip_counts_both_towers_and_their_projections() -> None:
    found = read_config({"model_type": "clip"}, "test")
    assert found.parameters == 151_277_313  # openai/clip-vit-base-patch32
    assert [stack.name for stack in found.stacks] == ["encoder", "vision"]
    assert [stack.positions for stack in found.stacks] == [77, (224 // 32) ** 2 + 1]


@pytest.mark.parametrize(
    ("config", "name"), [(TEXT, "CLIPTextModelWithProjection"), (VISION, "CLIPVisionModelWithProjection")]
)
def test_a_tower_alone_has_a_projection_only_if_its_class_has_one(config: dict[str, object], name: str) -> None:
    plain = read_config(config, "test")
    projected = read_config({**config, "architectures": [name], "projection_dim": 32}, "test")
    assert projected.parameters - plain.parameters == 32 * 64


@pytest.mark.parametrize(("family", "name"), [("clip", "CLIP"), ("siglip", "Siglip")])
def test_a_classifier_of_images_has_no_text_tower(family: str, name: str) -> None:
    tower = read_config({**VISION, "model_type": f"{family}_vision_model"}, "test")
    named = {"architectures": [f"{name}ForImageClassification"], "id2label": {"0": "cat", "1": "dog", "2": "fish"}}
    found = read_config({"model_type": family, "vision_config": VISION, **named}, "test")
    assert found.stacks == tower.stacks
    assert (found.kind, found.labels, found.vocabulary) == ("vision-encoder", 3, None)
    assert found.parameters - tower.parameters == 3 * (64 + 1)
