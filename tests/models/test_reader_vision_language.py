"""Two-tower and vision-language models, against the networks that transformers builds."""

import importlib
import json
from pathlib import Path

import pytest
from transformers_networks import assert_same

from planner.errors import ModelFileError
from planner.models.architecture import Attention
from planner.models.readers.class_defaults import class_defaults
from planner.models.readers.config_json import read_config, read_config_file

TEXT = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "vocab_size": 300,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
LLAMA = {"model_type": "llama", "head_dim": 16, **TEXT}
VISION = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 80}
CLIP = {"model_type": "clip_vision_model", "image_size": 28, "patch_size": 14, **VISION}
SIGLIP = {"model_type": "siglip_vision_model", "image_size": 28, "patch_size": 14, **VISION}
PIXTRAL = {"model_type": "pixtral", "head_dim": 8, **VISION}
QWEN_VISION = {"depth": 3, "num_heads": 4}
CLIP_TEXT = {key: value for key, value in TEXT.items() if key != "num_key_value_heads"}
MLLAMA = {
    "text_config": TEXT | {"cross_attention_layers": [1], "num_hidden_layers": 3},
    "vision_config": {
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_global_layers": 2,
        "attention_heads": 4,
        "intermediate_size": 80,
        "image_size": 28,
        "intermediate_layers_indices": [0, 2],
        "vision_output_dim": 96,
    },
}
QWEN3_VISION = QWEN_VISION | {"hidden_size": 32, "intermediate_size": 80, "out_hidden_size": 64}
DELTA = {
    "head_dim": 16,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 12,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}

CASES: dict[str, dict[str, object]] = {
    "CLIPModel": {"text_config": CLIP_TEXT, "vision_config": CLIP},
    "CLIPVisionModel": CLIP,
    "CLIPVisionModelWithProjection": CLIP,
    "CLIPTextModel": CLIP_TEXT,
    "CLIPTextModelWithProjection": CLIP_TEXT,
    "SiglipModel": {"text_config": CLIP_TEXT, "vision_config": SIGLIP},
    "SiglipVisionModel": SIGLIP | {"vision_use_head": False},
    "LlavaForConditionalGeneration": {"text_config": LLAMA, "vision_config": CLIP},
    "LlavaNextForConditionalGeneration": {"text_config": LLAMA, "vision_config": SIGLIP},
    "PaliGemmaForConditionalGeneration": {
        "text_config": {"model_type": "gemma", **TEXT},
        "vision_config": SIGLIP,
        "projection_dim": 64,
    },
    "Gemma3ForConditionalGeneration": {"text_config": TEXT, "vision_config": SIGLIP},
    "Idefics3ForConditionalGeneration": {
        "text_config": LLAMA,
        "vision_config": VISION | {"image_size": 28, "patch_size": 14},
    },
    "SmolVLMForConditionalGeneration": {
        "text_config": LLAMA,
        "vision_config": VISION | {"image_size": 28, "patch_size": 14},
        "tie_word_embeddings": True,
    },
    "InternVLForConditionalGeneration": {
        "text_config": {"model_type": "qwen2", **TEXT},
        "vision_config": VISION | {"image_size": [28, 28]},
    },
    "Mistral3ForConditionalGeneration": {
        "text_config": {"model_type": "mistral", "head_dim": 16, **TEXT},
        "vision_config": PIXTRAL,
    },
    "Llama4ForConditionalGeneration": {
        "text_config": TEXT | {"head_dim": 16, "intermediate_size_mlp": 160, "num_local_experts": 4},
        "vision_config": VISION | {"image_size": 28},
    },
    "MllamaForConditionalGeneration": MLLAMA,
    "Qwen2VLForConditionalGeneration": {
        "text_config": TEXT,
        "vision_config": QWEN_VISION | {"embed_dim": 32, "hidden_size": 64},
        "tie_word_embeddings": True,
    },
    "Qwen2_5_VLForConditionalGeneration": {
        "text_config": TEXT,
        "vision_config": QWEN3_VISION | {"fullatt_block_indexes": [1]},
    },
    "Qwen3VLForConditionalGeneration": {
        "text_config": TEXT,
        "vision_config": QWEN3_VISION | {"deepstack_visual_indexes": [0, 2]},
    },
    "Qwen3VLMoeForConditionalGeneration": {"text_config": TEXT | EXPERTS, "vision_config": QWEN3_VISION},
    "Qwen3_5ForConditionalGeneration": {"text_config": TEXT | DELTA, "vision_config": QWEN3_VISION},
    "Qwen3_5MoeForConditionalGeneration": {
        "text_config": TEXT | DELTA | EXPERTS | {"shared_expert_intermediate_size": 40},
        "vision_config": QWEN3_VISION,
    },
}


@pytest.mark.parametrize("name", CASES)
def test_small_networks_hold_the_same_tensors(name: str) -> None:
    assert_same(name, **CASES[name])


@pytest.mark.oracle
@pytest.mark.parametrize("name", CASES)
def test_default_networks_hold_the_same_tensors(name: str) -> None:
    assert_same(name)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("LlavaForConditionalGeneration", {"vision_feature_layer": [-2, -1], "multimodal_projector_bias": False}),
        ("LlavaForConditionalGeneration", {"vision_config": PIXTRAL}),
        ("InternVLForConditionalGeneration", {"text_config": {"model_type": "qwen3", "head_dim": 16, **TEXT}}),
        (
            "InternVLForConditionalGeneration",
            {
                "vision_config": VISION
                | {
                    "use_qk_norm": True,
                    "norm_type": "rms_norm",
                    "attention_bias": True,
                    "use_mean_pooling": False,
                    "use_absolute_position_embeddings": False,
                    "use_mask_token": True,
                }
            },
        ),
        ("Mistral3ForConditionalGeneration", {"multimodal_projector_bias": True, "tie_word_embeddings": False}),
    ],
)
def test_switches_are_followed(name: str, changes: dict[str, object]) -> None:
    assert_same(name, **CASES[name] | changes)


COMPOSITES = {
    "gemma3": "Gemma3",
    "idefics3": "Idefics3",
    "internvl": "InternVL",
    "llama4": "Llama4",
    "llava": "Llava",
    "llava_next": "LlavaNext",
    "mistral3": "Mistral3",
    "mllama": "Mllama",
    "paligemma": "PaliGemma",
    "qwen2_5_vl": "Qwen2_5_VL",
    "qwen2_vl": "Qwen2VL",
    "qwen3_5": "Qwen3_5",
    "qwen3_5_moe": "Qwen3_5Moe",
    "qwen3_vl": "Qwen3VL",
    "qwen3_vl_moe": "Qwen3VLMoe",
    "smolvlm": "SmolVLM",
}


@pytest.mark.oracle
@pytest.mark.parametrize("model_type", COMPOSITES)
def test_a_file_without_parts_means_the_class_defaults(model_type: str) -> None:
    whole = assert_same(f"{COMPOSITES[model_type]}ForConditionalGeneration")
    assert read_config({"model_type": model_type}, "test") == whole.evolve(reader_notes=())


PARTS = {
    "llama": ("llama", "LlamaConfig"),
    "mistral": ("mistral", "MistralConfig"),
    "qwen2": ("qwen2", "Qwen2Config"),
    "qwen3": ("qwen3", "Qwen3Config"),
    "gemma": ("gemma", "GemmaConfig"),
    "gemma2": ("gemma2", "Gemma2Config"),
    "gemma3_text": ("gemma3", "Gemma3TextConfig"),
    "llama4_text": ("llama4", "Llama4TextConfig"),
    "mllama_text_model": ("mllama", "MllamaTextConfig"),
    "qwen2_vl_text": ("qwen2_vl", "Qwen2VLTextConfig"),
    "qwen2_5_vl_text": ("qwen2_5_vl", "Qwen2_5_VLTextConfig"),
    "qwen3_vl_text": ("qwen3_vl", "Qwen3VLTextConfig"),
    "qwen3_vl_moe_text": ("qwen3_vl_moe", "Qwen3VLMoeTextConfig"),
    "qwen3_5_text": ("qwen3_5", "Qwen3_5TextConfig"),
    "qwen3_5_moe_text": ("qwen3_5_moe", "Qwen3_5MoeTextConfig"),
    "clip_text_model": ("clip", "CLIPTextConfig"),
    "siglip_text_model": ("siglip", "SiglipTextConfig"),
    "clip_vision_model": ("clip", "CLIPVisionConfig"),
    "siglip_vision_model": ("siglip", "SiglipVisionConfig"),
    "pixtral": ("pixtral", "PixtralVisionConfig"),
    "internvl_vision": ("internvl", "InternVLVisionConfig"),
    "idefics3_vision": ("idefics3", "Idefics3VisionConfig"),
    "smolvlm_vision": ("smolvlm", "SmolVLMVisionConfig"),
    "llama4_vision_model": ("llama4", "Llama4VisionConfig"),
    "mllama_vision_model": ("mllama", "MllamaVisionConfig"),
    "qwen2_vl_vision": ("qwen2_vl", "Qwen2VLVisionConfig"),
    "qwen2_5_vl_vision": ("qwen2_5_vl", "Qwen2_5_VLVisionConfig"),
    "qwen3_vl_vision": ("qwen3_vl", "Qwen3VLVisionConfig"),
    "qwen3_vl_moe_vision": ("qwen3_vl_moe", "Qwen3VLMoeVisionConfig"),
    "qwen3_5_vision": ("qwen3_5", "Qwen3_5VisionConfig"),
    "qwen3_5_moe_vision": ("qwen3_5_moe", "Qwen3_5MoeVisionConfig"),
}


@pytest.mark.parametrize("model_type", PARTS)
def test_class_defaults_are_those_of_transformers(model_type: str) -> None:
    module, name = PARTS[model_type]
    kind = getattr(importlib.import_module(f"transformers.models.{module}.configuration_{module}"), name)
    theirs = kind().to_dict()
    ours = class_defaults(model_type)
    assert ours
    assert {key: _plain(theirs[key]) for key in ours} == dict(ours)


def _plain(value: object) -> object:
    """Return a list as a list, and a square as its side."""
    if not isinstance(value, list | tuple):
        return value
    return value[0] if len(value) == 2 and value[0] == value[1] else list(value)


def test_llama_3_2_vision_counts_as_published() -> None:
    found = read_config({"model_type": "mllama"}, "test")
    assert found.parameters == 10_642_941_475
    assert [stack.name for stack in found.stacks] == ["vision", "decoder"]
    crossing = next(group for group in found.main.groups if group.layer.cross_attention is not None)
    assert crossing.layer.mixer is None
    assert crossing.places == (3, 8, 13, 18, 23, 28, 33, 38)
    assert found.stacks[0].positions == 4 * 1032


def test_a_flat_file_reads_like_a_nested_one() -> None:
    nested = CASES["Qwen2VLForConditionalGeneration"]
    flat = {"model_type": "qwen2_vl", **TEXT, "vision_config": nested["vision_config"], "tie_word_embeddings": True}
    assert read_config(flat, "test") == read_config({"model_type": "qwen2_vl", **nested}, "test")


def test_the_language_model_may_say_whether_its_head_is_tied() -> None:
    config = {"model_type": "internvl", **CASES["InternVLForConditionalGeneration"]}
    assert read_config(config, "test").tied_head
    text = {"model_type": "qwen2", **TEXT, "tie_word_embeddings": False}
    assert not read_config({**config, "text_config": text}, "test").tied_head


def test_qwen2_5_looks_through_windows_in_most_layers() -> None:
    found = read_config({"model_type": "qwen2_5_vl"}, "test")
    windows = {group.layer.mixer.window: group.count for group in found.stacks[0].groups}
    assert windows == {64: 28, None: 4}
    assert isinstance(found.main.groups[0].layer.mixer, Attention)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"vision_config": {"model_type": "eye"}}, "vision_config.model_type 'eye' is not known"),
        ({"vision_config": 3}, "vision_config must be an object"),
        ({"text_config": {"model_type": "mouth"}}, "'mouth' is not one of"),
    ],
)
def test_parts_that_cannot_be_read_are_named(changes: dict[str, object], problem: str) -> None:
    with pytest.raises(ModelFileError, match=problem):
        read_config({"model_type": "llava", **changes}, "test")


def test_parts_come_from_a_file(tmp_path: Path) -> None:
    config = {"model_type": "llava", "text_config": {"vocab_size": 32064}, "torch_dtype": "float16"}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    found = read_config_file(tmp_path)
    assert (found.vocabulary, found.stored_dtype, found.kind) == (32064, "fp16", "vision-language")
