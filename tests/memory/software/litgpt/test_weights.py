"""Weights in LitGPT, with the arithmetic."""

from small_models import small_llama

from planner.memory.software.litgpt.weights import (
    dequantized_term,
    head_size_elements,
    largest_matrix_elements,
    litgpt_weights,
)
from planner.memory.weights import parameter_counts


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
