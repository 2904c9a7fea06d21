"""Gradients in flight in one layer's backward pass, by hand."""

from small_models import DEEPSEEK, other

from planner.memory.precision import Precision
from planner.memory.training.autograd.backward import backward_points
from planner.memory.training.autograd.layer import saved_by_layer


def test_eager_latent_attention_keeps_keys_values_and_scores():
    # queries and keys of 128 + 64, values of 128, for each of 128 heads; two normed latents: fp32 input, normalised,
    # and what is read; fp32 softmax and its cast. In the backward pass 3 · 4 B for each score, its cast freed, and all
    # that stands behind attention with its output.
    layer = other("deepseek_v3", DEEPSEEK).main.groups[0].layer
    precision = Precision(2, 2, 2, autocast=False)
    ledger = saved_by_layer(layer, 7168, precision, "eager")
    query_key, value, latents = 128 * (128 + 64), 128 * 128, 1536 + 512
    assert ledger.attention == 2 * (2 * query_key + 2 * value) + 8 * latents + 8
    assert ledger.scores == 128 * (4 + 2)
    behind = ledger.feed_forward + (4 + 2 + 2) * 7168 + 4 + 2 * value
    in_scores = backward_points(layer, 7168, 1000, precision, "eager", checkpointed=False)[-1]
    assert in_scores.bytes == 1000 * 128 * (3 * 4 - 2) + 2 * 7168 - behind
