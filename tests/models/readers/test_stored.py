import json

import pytest
from made_files import TINY, tiny_tensors, write_model, write_safetensors

from planner.errors import ModelFileError
from planner.memory.weights import weight_bytes, weights_term
from planner.models.readers.config_json import read_config
from planner.models.readers.model_file import read_model_config, read_model_file
from planner.models.readers.safetensors import FileTensor
from planner.models.readers.stored import with_stored_sizes

LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def quantised(replace) -> dict[str, tuple[str, list[int]]]:
    """The tensors of the tiny Llama with each projection replaced by what `replace` makes of its module and shape."""
    found: dict[str, tuple[str, list[int]]] = {}
    for name, (dtype, shape) in tiny_tensors().items():
        module = name.removesuffix(".weight")
        found |= replace(module, *shape) if module.endswith(LINEAR) else {name: (dtype, shape)}
    return found


def gptq(module, out, into):
    return {
        f"{module}.qweight": ("I32", [into // 8, out]),
        f"{module}.qzeros": ("I32", [into // 32, out // 8]),
        f"{module}.scales": ("F16", [into // 32, out]),
        f"{module}.g_idx": ("I32", [into]),
    }


def awq(module, out, into):
    return {
        f"{module}.qweight": ("I32", [into, out // 8]),
        f"{module}.qzeros": ("I32", [into // 32, out // 8]),
        f"{module}.scales": ("F16", [into // 32, out]),
    }


def fp8(module, out, into):
    return {f"{module}.weight": ("F8_E4M3", [out, into]), f"{module}.weight_scale_inv": ("F32", [1, 1])}


def packed(module, out, into):
    return {
        f"{module}.weight_packed": ("I32", [out, into // 8]),
        f"{module}.weight_scale": ("BF16", [out, into // 32]),
        f"{module}.weight_shape": ("I64", [2]),
    }


def bitsandbytes(module, out, into):
    return {
        f"{module}.weight": ("U8", [out * into // 2, 1]),
        f"{module}.weight.absmax": ("U8", [out * into // 64]),
        f"{module}.weight.nested_absmax": ("F32", [1]),
        f"{module}.weight.nested_quant_map": ("F32", [256]),
        f"{module}.weight.quant_map": ("F32", [16]),
        f"{module}.weight.quant_state.bitsandbytes__nf4": ("U8", [90]),
    }


def nvfp4(module, out, into):
    return {
        f"{module}.weight": ("U8", [out, into // 2]),
        f"{module}.weight_scale": ("F8_E4M3", [out, into // 16]),
        f"{module}.weight_scale_2": ("F32", []),
        f"{module}.input_scale": ("F32", []),
    }


@pytest.mark.parametrize(
    ("replace", "settings", "scheme"),
    [
        (gptq, {"quant_method": "gptq", "bits": 4, "group_size": 32}, "gptq4-32"),
        (awq, {"quant_method": "awq", "bits": 4, "group_size": 64}, "awq4-64"),
        (fp8, {"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8-block128"),
        (packed, {"quant_method": "compressed-tensors", "format": "pack-quantized"}, "stored"),
        (
            bitsandbytes,
            {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True},
            "nf4-dq",
        ),
        (nvfp4, {"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
    ],
)
def test_quantised_checkpoints_take_exactly_what_their_files_hold(tmp_path, replace, settings, scheme):
    tensors = quantised(replace)
    found = read_model_file(write_model(tmp_path, tensors, TINY | {"quantization_config": settings}))
    data = (tmp_path / "model.safetensors").stat().st_size - 8
    header = int.from_bytes((tmp_path / "model.safetensors").read_bytes()[:8], "little")
    assert found.stored_bytes == data - header
    assert found.stored_as == scheme
    assert not any("network" in note for note in found.reader_notes)
    term = weights_term(found, scheme)
    assert term.bytes == found.stored_bytes == weight_bytes(found, "stored") == sum(part.bytes for part in term.parts)
    assert weight_bytes(found, "bf16") == 2 * found.parameters


def test_bytes_are_told_by_place_and_format(tmp_path):
    tensors = tiny_tensors() | {"model.norm.weight": ("F32", [64])}
    found = read_model_file(write_model(tmp_path, tensors))
    assert {(part.place, part.format): part.bytes for part in found.stored} == {
        ("embedding", "BF16"): 128 * 64 * 2,
        ("layers", "BF16"): 2 * (4 * 64 * 64 - 2 * 32 * 64 + 3 * 96 * 64 + 2 * 64) * 2,
        ("other", "F32"): 64 * 4,
        ("output", "BF16"): 128 * 64 * 2,
    }
    assert found.stored_as == "stored"
    assert found.quantization is None


def test_what_the_network_has_not_is_not_counted_and_told(tmp_path):
    tied = TINY | {"tie_word_embeddings": True}
    further = tiny_tensors() | {
        "model.layers.2.eh_proj.weight": ("BF16", [64, 128]),
        "model.layers.2.self_attn.q_proj.weight": ("BF16", [64, 64]),
        "model.layers.0.self_attn.rotary_emb.inv_freq": ("F32", [8]),
        "model.layers.0.mlp.gate.e_score_correction_bias": ("F32", [4]),
        "vision.0.weight": ("BF16", [1]),
        "vision.1.weight": ("BF16", [1]),
        "12345678.weight": ("BF16", [2]),
    }
    found = read_model_file(write_model(tmp_path, further, tied))
    assert found.stored_bytes == 2 * found.parameters + 16
    (note,) = found.reader_notes
    assert note == (
        "7 tensors of the files, 40,999 bytes, are not part of the network and not counted, such as '12345678.weight'"
    ).replace("40,999", f"{(64 * 128 + 64 * 64 + 128 * 64 + 4) * 2 + 32:,}")


def test_what_the_files_lack_is_told_and_everything_counted(tmp_path):
    fewer = {name: what for name, what in tiny_tensors().items() if not name.startswith(("lm_head", "model.layers.1."))}
    fewer["extra.weight"] = ("BF16", [3])
    found = read_model_file(write_model(tmp_path, fewer))
    (note,) = found.reader_notes
    assert note.startswith("10 tensors of the network are missing from the files, such as 'lm_head.weight': ")
    assert found.stored_bytes == sum(part.bytes for part in found.stored) == 2 * sum(p.elements for p in found.stored)
    assert ("other", 3) in {(part.place, part.elements - 64) for part in found.stored}


def test_other_shapes_than_configured_are_told(tmp_path):
    wider = tiny_tensors() | {"model.embed_tokens.weight": ("BF16", [130, 64])}
    found = read_model_file(write_model(tmp_path, wider))
    held = found.parameters + 128
    expected = f"the files hold {held:,} parameters where the configuration describes {found.parameters:,}"
    assert found.reader_notes == (expected,)


@pytest.mark.parametrize(("stated", "notes"), [("float32", 1), (None, 0)])
def test_the_files_decide_on_the_format(tmp_path, stated, notes):
    config = {name: value for name, value in TINY.items() if name != "torch_dtype"} | {"dtype": stated}
    found = read_model_file(write_model(tmp_path, tiny_tensors("F16"), config))
    assert found.stored_dtype == found.stored_as == "fp16"
    assert len(found.reader_notes) == notes
    assert all("the configuration states fp32, but the files hold fp16" in note for note in found.reader_notes)


@pytest.mark.parametrize("prefix", ["language_model.", ""])
def test_names_may_have_more_or_less_before_them(prefix):
    bare = {name.removeprefix("" if prefix else "model."): what for name, what in tiny_tensors().items()}
    tensors = [FileTensor(prefix + name, dtype, tuple(shape), 1, 2) for name, (dtype, shape) in bare.items()]
    found = with_stored_sizes(read_config(TINY, "x"), tensors)
    assert not any("not found" in note or "not part" in note for note in found.reader_notes)
    assert found.stored_bytes == 2 * len(tensors)


def test_experts_one_by_one_and_stacked():
    config = TINY | {
        "model_type": "mixtral",
        "num_local_experts": 3,
        "num_experts_per_tok": 2,
        "num_hidden_layers": 1,
    }
    attention = {name: what for name, what in tiny_tensors(layers=1).items() if ".mlp." not in name}
    experts = {
        f"model.layers.0.block_sparse_moe.experts.{number}.{name}.weight": ("BF16", shape)
        for number in range(3)
        for name, shape in (("w1", [96, 64]), ("w2", [64, 96]), ("w3", [96, 64]))
    }
    router = {"model.layers.0.block_sparse_moe.gate.weight": ("BF16", [3, 64])}
    every = attention | experts | router
    tensors = [FileTensor(name, dtype, tuple(shape), *_sizes(shape)) for name, (dtype, shape) in every.items()]
    found = with_stored_sizes(read_config(config, "x"), tensors)
    assert found.reader_notes == ()
    assert found.stored_bytes == 2 * found.parameters


def _sizes(shape):
    elements = 1
    for extent in shape:
        elements *= extent
    return elements, 2 * elements


def test_mxfp4_blocks_and_scales_stand_for_their_experts():
    config = {
        "model_type": "gpt_oss",
        "hidden_size": 64,
        "intermediate_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "vocab_size": 128,
        "num_local_experts": 2,
        "num_experts_per_tok": 1,
        "quantization_config": {"quant_method": "mxfp4"},
    }
    made = read_config(config, "x")
    inside = [tensor for group in made.main.groups for tensor in group.layer.tensors]
    names = [f"model.layers.0.{tensor.name}" for tensor in inside if tensor.role != "expert" or "bias" in tensor.name]
    blocks = [
        f"model.layers.0.mlp.experts.{name}_{part}"
        for name in ("gate_up_proj", "down_proj")
        for part in ("blocks", "scales")
    ]
    around = [tensor.name for tensor in (*made.main.before, *made.main.after, *made.head)]
    found = with_stored_sizes(made, [FileTensor(name, "U8", (1,), 1, 1) for name in (*names, *blocks, *around)])
    assert found.reader_notes == ()
    assert found.stored_bytes == len(names) + len(blocks) + len(around)
    assert found.stored_as == "mxfp4"


def test_a_plain_network_is_told_by_its_tensors_alone(tmp_path):
    file = write_safetensors(tmp_path / "tiny.safetensors", tiny_tensors(heads=256, keys=128))
    found = read_model_file(file)
    mixer = found.main.groups[0].layer.mixer
    assert (mixer.heads, mixer.kv_heads, mixer.head_dim) == (2, 1, 128)
    assert found.parameters * 2 == found.stored_bytes
    assert "without a config.json" in found.reader_notes[0]
    assert read_model_config(file)["model_type"] == "llama"
    narrow = write_safetensors(tmp_path / "narrow.safetensors", tiny_tensors(heads=192, keys=64))
    assert read_model_file(narrow).main.groups[0].layer.mixer.head_dim == 64


def test_biases_and_norms_tell_the_family(tmp_path):
    layers = range(2)
    biases = {
        f"model.layers.{n}.self_attn.{p}_proj.bias": ("BF16", [s])
        for n in layers
        for p, s in (("q", 128), ("k", 64), ("v", 64))
    }
    file = write_safetensors(tmp_path / "x.safetensors", tiny_tensors(heads=128, keys=64) | biases)
    assert read_model_file(file).model_type == "qwen2"
    norms = {f"model.layers.{n}.self_attn.{p}_norm.weight": ("BF16", [32]) for n in layers for p in "qk"}
    tied = {name: what for name, what in tiny_tensors(heads=128, keys=64).items() if name != "lm_head.weight"}
    found = read_model_file(write_safetensors(tmp_path / "y.safetensors", tied | norms))
    assert (found.model_type, found.main.groups[0].layer.mixer.head_dim, found.tied_head) == ("qwen3", 32, True)


@pytest.mark.parametrize(
    ("tensors", "reason"),
    [
        ({}, "tensor names that do not identify the network"),
        ({"unet.conv.weight": ("F32", [2])}, "tensor names that do not identify the network"),
        (tiny_tensors() | {"model.layers.1.mlp.up_proj.bias": ("BF16", [96])}, "do not identify"),
        (tiny_tensors() | {"model.layers.3.mlp.up_proj.weight": ("BF16", [96])}, "do not identify"),
        (tiny_tensors() | {"model.layers.0.x": ("BF16", [1]), "model.layers.1.x": ("BF16", [1])}, "do not identify"),
        (tiny_tensors("F8_E4M3"), "is quantized, and its tensors do not identify the scheme"),
        (tiny_tensors() | {"model.embed_tokens.weight": ("BF16", [128])}, "has no token embedding"),
        ({n: w for n, w in tiny_tensors().items() if "embed" not in n}, "has no token embedding"),
        (tiny_tensors(heads=96, keys=48), "96 query and 48 key channels, which no common head dimension divides"),
        (tiny_tensors(heads=0, keys=0), "0 query and 0 key channels"),
    ],
    ids=range(10),
)
def test_other_networks_need_their_configuration(tmp_path, tensors, reason):
    file = write_safetensors(tmp_path / "x.safetensors", tensors)
    with pytest.raises(ModelFileError, match=reason) as caught:
        read_model_file(file)
    assert "config.json" in caught.value.hint


def test_a_plan_keeps_what_is_stored(tmp_path):
    found = read_model_file(write_model(tmp_path, quantised(gptq)))
    again = type(found).model_validate(json.loads(found.model_dump_json()))
    assert again == found
    assert again.stored_bytes == found.stored_bytes
