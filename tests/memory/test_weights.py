"""The bytes of parameters as they are stored, with the arithmetic."""

import pytest
from made_files import tiny_tensors, write_model
from small_models import bundled, llama, other, small_llama

from planner.dtypes import AS_STORED, SCHEMES
from planner.memory.estimate import estimate_memory
from planner.memory.weights import (
    dequantized_projection_terms,
    is_gguf,
    parameter_counts,
    unpacked_four_bit_terms,
    weight_bytes,
    weights_term,
)
from planner.models.architecture import Architecture
from planner.models.readers.model_file import read_model_file
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference, Training

# Llama 2 7B: 32 layers of four 4096 × 4096 and three 4096 × 11008 projections, 65 norms, two 32000 × 4096 tables.
PROJECTIONS = 32 * (4 * 4096 * 4096 + 3 * 4096 * 11_008)


TABLE = 32_000 * 4096


NORMS = 65 * 4096


LLAMA_7B = PROJECTIONS + 2 * TABLE + NORMS


def test_parameters_are_counted():
    assert LLAMA_7B == 6_738_415_616
    counts = parameter_counts(llama())
    assert (counts.total, counts.linear, counts.experts) == (LLAMA_7B, PROJECTIONS, 0)
    assert counts.token_embedding == TABLE
    assert counts.smallest_layer == PROJECTIONS // 32 + 2 * 4096


def test_tied_embeddings_are_counted_once():
    assert llama().parameters - llama(tie_word_embeddings=True).parameters == TABLE


@pytest.mark.parametrize(("scheme", "size"), [("fp32", 4), ("bf16", 2), ("fp16", 2)])
def test_plain_formats(scheme, size):
    assert weight_bytes(llama(), scheme) == size * LLAMA_7B


def test_nf4_holds_the_projections_and_leaves_the_rest_in_16_bits():
    term = weights_term(llama(), "nf4")
    assert term.bytes == PROJECTIONS * 9 // 16 + 2 * (2 * TABLE + NORMS)  # 4.5 bits are 9/16 B
    assert [part.bytes for part in term.parts] == [PROJECTIONS * 9 // 16, 2 * (2 * TABLE + NORMS)]


def test_awq_holds_a_scale_and_a_zero_for_each_group():
    assert weight_bytes(llama(), "awq4-128") == PROJECTIONS // 2 + PROJECTIONS // 128 * 5 // 2 + 4 * TABLE + 2 * NORMS


def test_the_biases_of_experts_stay_in_bf16():
    # gpt-oss-20b: 24 layers with 32 experts of 5760 × 2880 and 2880 × 2880 in 4.25 bits, all else in bf16: the bytes
    # that the index of its checkpoint states.
    model = bundled().models.model("openai/gpt-oss-20b")
    experts = 24 * 32 * (5760 * 2880 + 2880 * 2880)
    expected = experts * 17 // 32 + 2 * (model.parameters - experts)
    assert weight_bytes(model, "mxfp4") == expected == 13_761_264_768


def test_a_checkpoint_in_a_scheme_of_its_own_is_as_stored():
    stored = llama().evolve(quantization="mxfp4")
    assert weight_bytes(stored, "mxfp4") == PROJECTIONS * 17 // 32 + 4 * TABLE + 2 * NORMS


def test_a_model_without_projections_has_nothing_to_quantize():
    bare = small_llama()
    layer = bare.main.groups[0].layer.evolve(tensors=())
    stack = bare.main.evolve(groups=(bare.main.groups[0].evolve(layer=layer),))
    term = weights_term(bare.evolve(stacks=(stack,)), "nf4")
    assert term.bytes == 2 * bare.evolve(stacks=(stack,)).parameters


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_can_be_estimated_and_says_how(scheme):
    term = weights_term(small_llama(), scheme)
    assert term.bytes > 0
    assert term.source
    assert sum(part.bytes for part in term.parts) in (0, term.bytes)


def test_gptq_and_awq_leave_a_vision_tower_alone_and_bitsandbytes_does_not():
    model = bundled().models.model("Qwen/Qwen2-VL-7B-Instruct")
    layer = 2 * 3584 * 3584 + 2 * 3584 * 512 + 3 * 3584 * 18_944
    tower = 32 * (4 * 1280 * 1280 + 2 * 1280 * 5120) + 5120 * 5120 + 5120 * 3584
    assert quantized_parameters(model, "awq4-128") == quantized_parameters(model, "gptq8-128") == 28 * layer
    assert quantized_parameters(model, "nf4") == 28 * layer + tower


def quantized_parameters(model: Architecture, scheme: str) -> int:
    return next(symbol.value for symbol in weights_term(model, scheme).symbols if symbol.name == "Q")


def test_weights_are_as_stored_unless_said_otherwise(gguf, unnamed):
    assert with_defaults(Inference(), gguf, 1).weights == "Q8_0"
    assert with_defaults(Inference(weights="stored"), gguf, 1).weights == "Q8_0"
    assert with_defaults(Inference(), unnamed, 1).weights == "stored"
    assert with_defaults(Inference(weights="stored"), small_llama(), 1).weights == "bf16"
    assert with_defaults(Inference(weights="nf4"), gguf, 1).weights == "nf4"


def test_safetensors_of_mixed_formats_are_no_gguf(tmp_path):
    mixed = tiny_tensors() | {"model.norm.weight": ("F32", [64])}
    found = read_model_file(write_model(tmp_path, mixed))
    assert found.stored_as == "stored"
    assert not is_gguf(found, "stored")
    terms = {term.name: term for term in estimate_memory(found, Inference()).terms}
    assert terms["weights"].bytes == found.stored_bytes == 2 * found.parameters + 2 * 64
    assert [part.name for part in terms["weights"].parts] == ["tensors in BF16", "tensors in F32"]


def test_without_files_as_stored_is_what_the_configuration_says():
    llama = small_llama()
    assert weight_bytes(llama, "stored") == weight_bytes(llama, "bf16")
    assert llama.stored_bytes == 0


def test_a_format_as_stored_is_a_gguf_file_if_the_checkpoint_is_one():
    assert not is_gguf(small_llama(), AS_STORED)
    assert is_gguf(small_llama(), "Q4_K_M")
    assert weights_term(small_llama(), "bf16").bytes == 2 * small_llama().parameters


def test_without_projections_nothing_is_dequantized():
    bare = small_llama()
    stack = bare.main
    group = stack.groups[0]
    tensors = tuple(tensor for tensor in group.layer.tensors if tensor.role != "linear")
    emptied = stack.evolve(groups=(group.evolve(layer=group.layer.evolve(tensors=tensors)),))
    assert dequantized_projection_terms(bare.evolve(stacks=(emptied,)), 2, "a source") == ()


def test_nf4_that_multiplies_in_fp32_is_cast_from_16_bits():
    half, single = (unpacked_four_bit_terms(small_llama(), size)[0].bytes for size in (2, 4))
    assert single == 3 * half


def test_masks_that_layers_keep_are_beside_the_weights_in_training_and_answers():
    sizes = {"hidden_size": 64, "num_heads": 4, "num_layers": 3, "vocab_size": 100, "max_position_embeddings": 512}
    network = other("gpt_neo", sizes)
    for workload in (Inference(), Training(), Training(trainable=("layers.1",))):
        # One boolean for each pair of 512 positions in each of 3 layers.
        assert estimate_memory(network, workload).term("buffers").bytes == 3 * 512 * 512


def test_tables_of_positions_that_are_no_parameters_are_buffers_in_their_format():
    sizes = {"d_model": 64, "vocab_size": 100, "max_position_embeddings": 510, "share_encoder_decoder_embeddings": True}
    sizes |= {f"{side}_{name}": 4 for side in ("encoder", "decoder") for name in ("layers", "attention_heads")}
    network = other("m2m_100", sizes | {"encoder_ffn_dim": 128, "decoder_ffn_dim": 128})
    # 510 + 2 positions for encoder and decoder, of 64 elements
    for workload, width in ((Inference(compute="bf16"), 2), (Training(compute="amp-bf16"), 4)):
        assert estimate_memory(network, workload).term("buffers").bytes == 2 * 512 * 64 * width
