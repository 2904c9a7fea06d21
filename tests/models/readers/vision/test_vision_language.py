"""What readers find in vision-language models beside their tensors."""

import json
from pathlib import Path

import pytest
from reader_cases import INTERNVL, QWEN2_VL, TEXT

from planner.errors import ModelFileError
from planner.models.readers.config_json import read_config, read_config_file


def test_llama_3_2_vision_counts_as_transformers_does() -> None:
    found = read_config({"model_type": "mllama"}, "test")
    assert found.parameters == 10_642_941_475
    assert [stack.name for stack in found.stacks] == ["vision", "decoder"]
    crossing = next(group for group in found.main.groups if group.layer.cross_attention is not None)
    assert crossing.layer.mixer is None
    assert crossing.places == (3, 8, 13, 18, 23, 28, 33, 38)
    assert found.stacks[0].positions == 4 * 1032


def test_a_flat_file_reads_like_a_nested_one() -> None:
    flat = {"model_type": "qwen2_vl", **QWEN2_VL, **TEXT, "text_config": None}
    assert read_config(flat, "test") == read_config({"model_type": "qwen2_vl", **QWEN2_VL}, "test")


def test_the_language_model_may_say_whether_its_head_is_tied() -> None:
    text = TEXT | {"model_type": "qwen2"}
    config = {"model_type": "internvl", "vision_config": INTERNVL, "text_config": text}
    assert read_config(config, "test").tied_head
    assert not read_config({**config, "text_config": text | {"tie_word_embeddings": False}}, "test").tied_head
    assert not read_config({**config, "tie_word_embeddings": False}, "test").tied_head


def test_a_tie_that_only_the_part_on_text_states_holds_where_transformers_takes_it_over() -> None:
    text, false = TEXT | {"model_type": "llama", "tie_word_embeddings": True}, {"tie_word_embeddings": False}
    assert read_config({"model_type": "llava", "text_config": text, **false}, "test").tied_head
    assert not read_config({"model_type": "llava_next", "text_config": text, **false}, "test").tied_head
    qwen = {"model_type": "qwen2_vl", **QWEN2_VL, **false}
    qwen["text_config"] = {**qwen["text_config"], "tie_word_embeddings": True}
    assert read_config(qwen, "test").tied_head


def test_llavas_prompt_gets_the_class_token_only_if_it_says_so() -> None:
    text = {"model_type": "llava", "text_config": TEXT | {"model_type": "llama"}}
    assert read_config(text, "test").stacks[0].images.skipped == 1
    assert read_config({**text, "vision_feature_select_strategy": "full"}, "test").stacks[0].images.skipped == 0


@pytest.mark.parametrize(
    ("model_type", "text_type", "decoder"),
    [
        ("gemma3", "gemma3_text", "Gemma3ForCausalLM"),
        ("llama4", "llama4_text", "Llama4ForCausalLM"),
        ("mllama", "mllama_text_model", "MllamaForCausalLM"),
        ("qwen3_5", "qwen3_5_text", "Qwen3_5ForCausalLM"),
        ("qwen3_5_moe", "qwen3_5_moe_text", "Qwen3_5MoeForCausalLM"),
    ],
)
def test_the_class_of_the_decoder_alone_has_no_vision_tower(model_type: str, text_type: str, decoder: str) -> None:
    found = read_config({"model_type": model_type, "architectures": [decoder]}, "test")
    whole = read_config({"model_type": model_type}, "test")
    assert (found.kind, found.model_type) == ("decoder", text_type)
    assert found.stacks == whole.stacks[1:]


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
