"""The readers beyond plain decoders: what they count, and that they find exactly what transformers builds."""

import importlib
import json
from pathlib import Path

import pytest
from reader_cases import ALL, IDENTITIES, Case
from transformers_networks import assert_same

from planner.models.readers.config_fields import config_defaults
from planner.models.readers.config_json import read_config

# [model_type, parameters] of each case, as transformers 5.23 counts them; the oracle below checks the file.
COUNTS = json.loads((Path(__file__).parents[1] / "golden" / "reader-counts.json").read_text(encoding="utf-8"))

QUICK = (
    "ModernBertForMaskedLM-0",
    "DebertaV2ForMaskedLM-1",
    "T5ForConditionalGeneration",
    "WhisperForConditionalGeneration-0",
    "ViTForImageClassification-0",
    "JambaForCausalLM-0",
    "NemotronHForCausalLM-0",
    "Qwen3NextForCausalLM-0",
    "MllamaForConditionalGeneration",
    "Qwen2_5_VLForConditionalGeneration",
)

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


@pytest.mark.parametrize(("identity", "case"), list(zip(IDENTITIES, ALL, strict=True)), ids=IDENTITIES)
def test_counts_are_those_of_transformers(identity: str, case: Case) -> None:
    model_type, parameters = COUNTS[identity]
    found = read_config({**case.changes, "model_type": model_type, "architectures": [case.name]}, identity)
    assert found.parameters == parameters


@pytest.mark.parametrize("identity", QUICK)
def test_a_network_of_each_kind_holds_the_same_tensors(identity: str) -> None:
    case = ALL[IDENTITIES.index(identity)]
    assert_same(case.name, **case.changes)


@pytest.mark.oracle
@pytest.mark.parametrize(("identity", "case"), list(zip(IDENTITIES, ALL, strict=True)), ids=IDENTITIES)
def test_small_networks_hold_the_same_tensors(identity: str, case: Case) -> None:
    found = assert_same(case.name, **case.changes)
    assert COUNTS.get(identity) == [found.model_type, found.parameters]


@pytest.mark.oracle
@pytest.mark.parametrize("name", sorted({case.name for case in ALL}))
def test_default_networks_hold_the_same_tensors(name: str) -> None:
    assert_same(name)


@pytest.mark.oracle
@pytest.mark.parametrize("model_type", COMPOSITES)
def test_a_file_without_parts_means_the_class_defaults(model_type: str) -> None:
    whole = assert_same(f"{COMPOSITES[model_type]}ForConditionalGeneration")
    assert read_config({"model_type": model_type}, "test") == whole.evolve(reader_notes=())


@pytest.mark.oracle
@pytest.mark.parametrize("model_type", PARTS)
def test_class_defaults_are_those_of_transformers(model_type: str) -> None:
    module, name = PARTS[model_type]
    kind = getattr(importlib.import_module(f"transformers.models.{module}.configuration_{module}"), name)
    theirs = kind().to_dict()
    ours = config_defaults(model_type)
    assert ours
    assert {key: _plain(theirs[key]) for key in ours} == dict(ours)


def _plain(value: object) -> object:
    """Return a list as a list, and a square as its side."""
    if not isinstance(value, list | tuple):
        return value
    return value[0] if len(value) == 2 and value[0] == value[1] else list(value)
