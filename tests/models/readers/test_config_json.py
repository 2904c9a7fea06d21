import json
from pathlib import Path

import pytest

from planner.errors import ModelFileError, NoFormulaError
from planner.models.readers.config_fields import ConfigFields
from planner.models.readers.config_json import read_config, read_config_file, stored_dtype

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 100,
}


def refusal(path: Path) -> ModelFileError:
    with pytest.raises(ModelFileError) as caught:
        read_config_file(path)
    assert str(path) in caught.value.message
    assert caught.value.hint
    return caught.value


def test_a_file_and_the_folder_that_holds_it_read_the_same(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(LLAMA), encoding="utf-8-sig")
    assert read_config_file(file) == read_config_file(tmp_path) == read_config(LLAMA, "x")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(bytes(range(256)), "not text in UTF-8", id="binary"),
        pytest.param("ü".encode("latin-1"), "not text in UTF-8", id="latin-1"),
        pytest.param(b"", "not JSON", id="empty"),
        pytest.param(b"model_type: llama", "not JSON: it starts with other text", id="yaml"),
        pytest.param(b'{"model_type": "llama",\n "hidden_size": }', "in line 2", id="cut-short"),
        pytest.param(b"[1, 2]", "holds a JSON list, not an object", id="list"),
        pytest.param(b'"llama"', "holds a JSON str", id="text"),
        pytest.param(b"[" * 200_000, "nested too deep", id="deep-lists"),
        pytest.param(b'{"a": ' * 200_000, "nested too deep", id="deep-objects"),
        pytest.param(b'{"model_type": "llama", "hidden_size": NaN}', "hidden_size: nan is not a number", id="nan"),
        pytest.param(
            b'{"model_type": "llama", "hidden_size": -Infinity}',
            "hidden_size: a number of too many digits",
            id="minus-inf",
        ),
        pytest.param(b'{"model_type": "llama", "hidden_size": Infinity}', "hidden_size must be", id="infinity"),
        pytest.param(
            b'{"model_type": "llama", "hidden_size": ' + b"9" * 5000 + b"}",
            "hidden_size must be a whole number",
            id="5000-digits",
        ),
        pytest.param(b'{"model_type": "llama", "hidden_size": ' + b"9" * 400 + b"}", "hidden_size", id="400-digits"),
    ],
)
def test_what_is_not_a_configuration_is_refused_with_a_reason(tmp_path: Path, content: bytes, reason: str) -> None:
    file = tmp_path / "config.json"
    file.write_bytes(content)
    assert reason in refusal(file).message


def test_a_folder_without_a_configuration_is_refused(tmp_path: Path) -> None:
    assert "folder without a config.json" in refusal(tmp_path).message
    (tmp_path / "config.json").mkdir()
    assert "folder without a config.json" in refusal(tmp_path).message


@pytest.mark.parametrize(
    "changes",
    [
        {"hidden_size": None},
        {"hidden_size": 10**8},
        {"num_hidden_layers": 10**6},
        {"num_attention_heads": 7},
        {"num_key_value_heads": 3},
        {"hidden_act": "sparkle"},
        {"tie_word_embeddings": "yes"},
        {"attention_dropout": 1.5},
        {"hidden_size": 10**7, "intermediate_size": 10**7, "num_hidden_layers": 10**5, "num_attention_heads": 1},
    ],
    ids=str,
)
def test_impossible_fields_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ModelFileError) as caught:
        read_config({**LLAMA, **changes}, "config.json")
    assert caught.value.hint


def test_too_many_parameters_are_refused() -> None:
    huge = {"hidden_size": 10**6, "intermediate_size": 10**7, "num_hidden_layers": 1000, "num_attention_heads": 10**4}
    with pytest.raises(ModelFileError, match=r"describes 3\..*e\+16 parameters"):
        read_config({**LLAMA, **huge}, "config.json")


@pytest.mark.parametrize("name", ["text_config", "llm_config", "language_config"])
def test_the_language_part_of_an_unknown_composite_is_read_with_a_note(name: str) -> None:
    found = read_config({"model_type": "unheard-of", name: LLAMA, "torch_dtype": "bfloat16"}, "config.json")
    assert found.parameters == read_config(LLAMA, "x").parameters
    assert found.stored_dtype == "bf16"
    assert found.reader_notes == (
        "only the language part (llama) was read; the other parts are not counted (a trace counts them)",
    )


def test_a_composite_without_a_model_type_of_its_own_is_read_by_its_language_part() -> None:
    assert read_config({"text_config": LLAMA}, "config.json").model_type == "llama"
    with pytest.raises(ModelFileError, match="'unheard-of' is not one of"):
        read_config({"model_type": "unheard-of", "text_config": {"hidden_size": 1}}, "config.json")


@pytest.mark.parametrize(
    ("stated", "read"),
    [
        ({"torch_dtype": "float16"}, "fp16"),
        ({"dtype": "bfloat16"}, "bf16"),
        ({"torch_dtype": "torch.float32"}, "fp32"),
        ({"torch_dtype": "auto"}, None),
        ({}, None),
    ],
)
def test_the_stored_format_is_read(stated: dict[str, object], read: str | None) -> None:
    found = read_config({**LLAMA, **stated}, "config.json")
    assert found.stored_dtype == read
    assert found.reader_notes == ()


def test_an_unknown_stored_format_is_noted() -> None:
    found = read_config({**LLAMA, "torch_dtype": "posit8"}, "config.json")
    assert found.stored_dtype is None
    assert "posit8" in found.reader_notes[0]


@pytest.mark.parametrize(
    ("settings", "scheme"),
    [
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, "nf4"),
        ({"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True}, "nf4-dq"),
        ({"quant_method": "bitsandbytes", "_load_in_8bit": True}, "int8"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, "gptq4-128"),
        ({"quant_method": "gptq", "bits": 8, "group_size": 128}, "gptq8-128"),
        ({"quant_method": "awq", "w_bit": 4, "q_group_size": 64}, "awq4-64"),
        ({"quant_method": "fp8"}, "fp8"),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8-block128"),
        ({"quant_method": "fbgemm_fp8"}, "fp8"),
        ({"quant_method": "mxfp4"}, "mxfp4"),
        ({"quant_method": "compressed-tensors", "format": "float-quantized"}, "fp8"),
        ({"quant_method": "compressed-tensors", "format": "int-quantized"}, "int8"),
        ({"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"}, "nvfp4"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]}, "nvfp4"),
        ({"quant_algo": "FP8"}, "fp8"),
    ],
    ids=str,
)
def test_the_quantisation_of_the_checkpoint_is_read(settings: dict[str, object], scheme: str) -> None:
    found = read_config({**LLAMA, "quantization_config": settings}, "config.json")
    assert found.quantization == scheme
    assert found.reader_notes == ()


def test_the_stored_format_may_be_that_of_the_part_on_text() -> None:
    fields = ConfigFields({"text_config": {"dtype": "float16"}}, "config.json")
    assert stored_dtype(fields) == "fp16"
    assert stored_dtype(ConfigFields({"text_config": {}}, "config.json")) is None


@pytest.mark.parametrize(
    "settings",
    [
        {"quant_method": "aqlm"},
        {},
        {"quant_method": "bitsandbytes", "load_in_4bit": True},
        {"quant_method": "gptq", "bits": 3, "group_size": -1},
        {"quant_method": "fp8", "weight_block_size": [128, 64]},
        {"quant_method": "fp8", "weight_block_size": [17, 17]},
        {"quant_method": "compressed-tensors", "format": "marlin-24"},
        {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["model.layers.0.self_attn*"]},
        {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"},
    ],
    ids=str,
)
def test_an_unknown_quantisation_is_noted_and_not_guessed(settings: dict[str, object]) -> None:
    found = read_config({**LLAMA, "quantization_config": settings}, "config.json")
    assert found.quantization is None
    assert "not supported" in found.reader_notes[0]


def test_mxfp4_checkpoints_keep_what_is_not_an_expert_in_16_bits() -> None:
    assert read_config({**LLAMA, "quantization_config": {"quant_method": "mxfp4"}}, "x").quantized_roles == ("expert",)
    assert read_config({**LLAMA, "quantization_config": {"quant_method": "fp8"}}, "x").quantized_roles == (
        "linear",
        "expert",
    )


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("nets/config.json", "nets/config.json"),
        ("my nets/config.json", '"my nets/config.json"'),
        ("hf:facebook/wav2vec2-base: config.json", "hf:facebook/wav2vec2-base"),
    ],
)
@pytest.mark.parametrize("model_type", ["wav2vec2", "encodec", "detr", "yolos", "resnet"])
def test_a_network_without_a_formula_goes_to_the_trace(model_type: str, source: str, target: str) -> None:
    with pytest.raises(NoFormulaError) as caught:
        read_config({"model_type": model_type}, source)
    assert f"`gpu-planner trace {target}`" in caught.value.hint
    assert caught.value.traceable == target.strip('"')


@pytest.mark.parametrize(
    ("config", "hint"),
    [
        ({"architecture": "resnet50", "num_classes": 1000}, "gpu-planner trace my_net.py:NAME"),
        ({"_class_name": "UNet2DConditionModel"}, "the folder with the model_index.json"),
    ],
)
def test_what_is_of_no_class_of_transformers_says_where_to_go(config: dict[str, object], hint: str) -> None:
    with pytest.raises(ModelFileError, match="model_type is missing") as caught:
        read_config(config, "config.json")
    assert hint in caught.value.hint
    assert ("in the window's Plan menu" in caught.value.hint) == ("gpu-planner" in hint)


def test_the_decoder_of_an_encoder_decoder_alone_has_no_formula() -> None:
    config = {"model_type": "bart", "architectures": ["BartForCausalLM"]}
    sizes: dict[str, object] = {"d_model": 64, "vocab_size": 50, "max_position_embeddings": 32}
    for part in ("encoder", "decoder"):
        sizes |= {f"{part}_layers": 1, f"{part}_attention_heads": 2, f"{part}_ffn_dim": 128}
    with pytest.raises(NoFormulaError, match="BartForCausalLM is the decoder of an encoder-decoder alone") as caught:
        read_config({**config, **sizes}, "bart/config.json")
    assert caught.value.traceable == "bart/config.json"


def test_an_unknown_quantization_is_noted_by_its_name_in_short() -> None:
    found = read_config({**LLAMA, "quantization_config": {"quant_method": "x" * 50}}, "config.json")
    assert f"({'x' * 40})" in found.reader_notes[0]
