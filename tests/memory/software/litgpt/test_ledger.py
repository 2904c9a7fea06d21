"""Activations saved by LitGPT's blocks, with the arithmetic."""

from small_models import DEEPSEEK, bundled, other

from planner.memory.software.litgpt.ledger import (
    BlockSettings,
    bitsandbytes_input_bytes,
    graph_matrix_elements,
    saved_by_block,
)
from planner.memory.software.litgpt.parameters import AdaptedParts

QUERY_VALUE = AdaptedParts(frozenset({"query", "value"}), 8, dropout=True)


EVERYTHING = AdaptedParts(frozenset({"query", "key", "value", "projection", "mlp", "head"}), 8, dropout=True)


H, INNER, Q, KV, A = 4096, 14_336, 4096, 1024, 32


def layer(name="meta-llama/Llama-3.1-8B"):
    return bundled().models.model(name).main.groups[0].layer


def kept(parts, *, reached=True, stream=2, quantized=False, name="meta-llama/Llama-3.1-8B"):
    return saved_by_block(layer(name), H, BlockSettings(stream, 2, parts, quantized), reached)


def test_a_block_with_adapters_on_queries_and_values():
    ledger = kept(QUERY_VALUE)
    assert ledger.norms == 2 * (4 * H + 4)  # fp32 copies, and nothing of what frozen projections read
    assert ledger.attention == 2 * 3 * Q + 2 * Q + 4 * A  # keys and values as wide as all heads
    assert ledger.feed_forward == 3 * 2 * INNER
    assert ledger.adapters == 2 * H + H + 2 * 2 * 8 + 2 * (Q + KV)


def test_a_block_with_adapters_everywhere():
    ledger = kept(EVERYTHING)
    each = 2 * 8
    assert ledger.adapters == (3 * H + 3 * each) + (3 * Q + each) + 2 * (3 * H + each) + (3 * INNER + each)


def test_without_dropout_adapters_share_what_they_read():
    ledger = kept(EVERYTHING._replace(dropout=False))
    each = 2 * 8
    assert ledger.adapters == (2 * H + 3 * each) + (2 * Q + each) + (2 * H + 2 * each) + (2 * INNER + each)


def test_the_first_block_keeps_nothing_before_its_first_adapter():
    first, next_ = kept(QUERY_VALUE, reached=False), kept(QUERY_VALUE)
    assert next_.total(1, 1, 0) - first.total(1, 1, 0) == (4 * H + 4) + H
    behind = AdaptedParts(frozenset({"mlp"}), 8, dropout=True)
    only_forward = kept(behind, reached=False)
    assert (only_forward.norms, only_forward.attention) == (0, 0)
    assert only_forward.adapters == 2 * (2 * H + 16) + 3 * INNER + 16


def test_a_parallel_block_reads_one_tensor_and_a_merged_result_is_kept_for_its_values():
    ledger = kept(QUERY_VALUE, name="stabilityai/stablelm-base-alpha-3b")
    assert ledger.norms == 2 * H + 2 * 8
    assert ledger.attention == 2 * (2 * H + 3 * H + H) + 4 * A
    first = kept(QUERY_VALUE, reached=False, name="stabilityai/stablelm-base-alpha-3b")
    assert (first.norms, first.feed_forward) == (0, 0)


def test_full_training_keeps_what_norms_and_projections_read():
    ledger = kept(None)
    assert ledger.norms == 2 * (8 * H + 4) + 2 * H
    assert ledger.attention == 2 * 3 * Q + 2 * 2 * Q + 4 * A
    assert ledger.feed_forward == 3 * 2 * INNER + 2 * INNER + 2 * H


def test_bitsandbytes_holds_on_to_what_quantized_projections_read():
    dropped = BlockSettings(2, 2, QUERY_VALUE, quantized=True)
    assert bitsandbytes_input_bytes(layer(), H, dropped) == (2 * (2 * H + INNER + Q), 2 * (2 * H + INNER + Q))
    assert bitsandbytes_input_bytes(layer(), H, dropped, False) == (2 * (H + INNER + Q), 2 * (H + INNER + Q))
    shared = BlockSettings(2, 2, EVERYTHING._replace(dropout=False), quantized=True)
    assert bitsandbytes_input_bytes(layer(), H, shared) == (0, 2 * (2 * H + INNER + Q))
    assert bitsandbytes_input_bytes(layer(), H, dropped._replace(quantized=False)) == (0, 0)


def test_bitsandbytes_holds_nothing_of_a_first_block_without_adapters():
    head = BlockSettings(2, 2, AdaptedParts(frozenset({"head"}), 8, dropout=True), quantized=True)
    assert bitsandbytes_input_bytes(layer(), H, head, input_has_gradient=False) == (0, 0)


def test_autocast_casts_frozen_matrices_where_a_derivative_goes_through():
    mixed = BlockSettings(4, 2, QUERY_VALUE)
    whole = H * (Q + 2 * KV) + H * Q + 3 * H * INNER
    assert graph_matrix_elements(layer(), H, mixed) == whole
    assert graph_matrix_elements(layer(), H, mixed, False) == whole - H * (Q + 2 * KV)


def test_blocks_that_litgpt_is_not_described_for_keep_nothing():
    latent = other("deepseek_v3", DEEPSEEK).main.groups[0].layer
    settings = BlockSettings(2, 2, EVERYTHING, quantized=True)
    assert saved_by_block(latent, H, settings).total(1, 1, 0) == 0
    assert (bitsandbytes_input_bytes(latent, H, settings), graph_matrix_elements(latent, H, settings)) == ((0, 0), 0)
