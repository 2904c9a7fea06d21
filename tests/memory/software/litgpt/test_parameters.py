"""Weights and adapted parts of a network in LitGPT, with the arithmetic."""

from small_models import llama, small_llama

from planner.memory.software.litgpt.parameters import (
    AdaptedParts,
    adapted_parts,
    dequantized_term,
    head_size_elements,
    largest_matrix_elements,
    litgpt_adapters,
    litgpt_weights,
)
from planner.memory.weights import parameter_counts
from planner.workload.training import Lora

QUERY_VALUE = AdaptedParts(frozenset({"query", "value"}), 8, dropout=True)


EVERYTHING = AdaptedParts(frozenset({"query", "key", "value", "projection", "mlp", "head"}), 8, dropout=True)


def test_adapters_of_queries_and_values_are_merged():
    # Lit-GPT's own tables: 4,194,304 trainable parameters of Llama 2 7B at rank 8.
    trained = litgpt_adapters(llama(), QUERY_VALUE)
    assert sum(tensor.size * count for tensor, count in trained) == 4_194_304
    heads = [tensor for tensor, _ in litgpt_adapters(llama(), EVERYTHING) if tensor.name.startswith("head")]
    assert [tensor.shape for tensor in heads] == [(8, 4096), (32_000, 8)]
    assert litgpt_adapters(llama(), AdaptedParts(frozenset({"projection"}), 8, dropout=False))[0][0].shape == (8, 4096)


def test_targets_have_litgpts_names_or_those_of_transformers():
    assert adapted_parts(Lora(targets=("q_proj", "v_proj"))).names == {"query", "value"}
    assert adapted_parts(Lora()).names == {"query", "key", "value", "projection", "mlp"}
    assert adapted_parts(Lora(targets=("head",))).merged_adapter_count == 0


def test_nothing_is_tied_and_the_head_is_quantized():
    tied, apart = small_llama(tie_word_embeddings=True), small_llama()
    assert litgpt_weights(tied, "bf16", 2).bytes == litgpt_weights(apart, "bf16", 2).bytes
    counts = parameter_counts(apart)
    beside = counts.total - counts.linear - counts.token_embedding
    assert litgpt_weights(tied, "nf4", 2).bytes == litgpt_weights(apart, "nf4", 2).bytes
    assert litgpt_weights(apart, "nf4", 2).bytes == (counts.total - beside) * 9 // 16 + 2 * beside


def test_a_matrix_is_unpacked_to_fp16_and_copied():
    assert dequantized_term(1000, 2).bytes == 1000 * (2 + 2)
    assert dequantized_term(1000, 4).bytes == 1000 * (2 + 4)


def test_the_largest_matrix_of_a_layer_and_the_head():
    network = small_llama(hidden_size=64, intermediate_size=256, vocab_size=1000)
    assert (largest_matrix_elements(network), head_size_elements(network)) == (64 * 256, 64 * 1000)
