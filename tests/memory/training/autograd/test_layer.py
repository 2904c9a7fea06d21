"""Activations that one layer saves, by hand."""

import pytest
from small_models import LLAMA, other, small_llama
from training_snapshots import TOKENS, alive, layer_difference, snapshots

from planner.memory.precision import Precision
from planner.memory.training.autograd.layer import (
    feed_forward_bytes,
    feed_forward_norm_and_readers_bytes,
    saved_by_layer,
)
from planner.memory.training.autograd.network import feed_forward_gradient_bytes
from planner.models.architecture import Mlp, Norm, StateMixer

LAYER = {"h": 4096, "q": 4096, "kv": 1024, "i": 14_336, "a": 32}


def test_what_a_layer_keeps_in_bf16():
    # 16h + 4q + 4kv + 8i + 4a + 8 bytes a token: 200,840 for Llama-3.1-8B
    h, q, kv, i, a = LAYER.values()
    per_token = 16 * h + 4 * q + 4 * kv + 8 * i + 4 * a + 8
    assert per_token == 200_840
    assert layer_difference(compute="bf16") == TOKENS * per_token


def test_what_a_layer_keeps_in_fp32():
    # No fused kernel takes groups in fp32: matrix products keep q, k, v and output in full, 16q, and 4 · a · s
    h, q, _, i, a = LAYER.values()
    assert layer_difference(compute="fp32") == TOKENS * (24 * h + 16 * q + 16 * i + 8 + 4 * a * TOKENS)
    # With the kernels of flash-attn, or as many heads of keys, 24h + 8q + 8kv + 16i + 4a + 8
    assert layer_difference(compute="fp32", attention="flash") == TOKENS * 368_776


def test_what_a_layer_keeps_under_autocast():
    # 26h + 4q + 4kv + 8i + 4a + 8, beside the casts of its projections
    assert layer_difference(compute="amp-bf16") == TOKENS * 241_800


def test_eager_attention_keeps_scores_and_repeated_heads():
    # 4kv become 4q, the statistics 4a fall away, and 6 · a · s come: fp32 softmax and its cast
    h, q, _, i, a = LAYER.values()
    per_token = 16 * h + 8 * q + 8 * i + 8 + 6 * a * TOKENS
    assert layer_difference(compute="bf16", attention="eager") == TOKENS * per_token


BF16 = Precision(parameter_bytes=2, compute_bytes=2, residual_bytes=2, autocast=False)
AUTOCAST = BF16._replace(parameter_bytes=4, residual_bytes=4, autocast=True)


def test_a_squared_relu_keeps_its_base_and_works_on_four_copies():
    # ReLU's result and its square; under autocast the square's base is a copy in fp32.
    block = Mlp(intermediate=96, gated=False, activation="relu2")
    assert feed_forward_bytes(block, 64, BF16) == (2 + 2) * 96
    assert feed_forward_bytes(block, 64, AUTOCAST) == (2 + 4 + 2) * 96
    # Gradient, base, doubled base and product, less the square that was freed.
    assert feed_forward_gradient_bytes(block, 64, BF16, checkpointed=False) == (4 * 2 - 2) * 96
    assert feed_forward_gradient_bytes(block, 64, AUTOCAST, checkpointed=False) == (4 * 4 - 2) * 96


def test_a_norm_in_autocasts_own_format_leaves_no_copies_to_its_readers():
    layer = small_llama().main.groups[0].layer.evolve(norm=Norm(kind="layer"))
    cast = layer.evolve(norm=Norm(kind="layer", autocasts=True))
    # Two statistics; the gate and the up projection each copy what the norm wrote, or share it.
    assert feed_forward_norm_and_readers_bytes(layer, 64, AUTOCAST) == 4 * 64 + 8 + 2 * 2 * 64
    assert feed_forward_norm_and_readers_bytes(cast, 64, AUTOCAST) == 2 * 64 + 8 + 2 * 64


def attention_bytes(**changes):
    """Return what attention of 4 heads and 2 of keys, each of 16 elements, keeps of a token in the fused kernel."""
    layer = small_llama().main.groups[0].layer
    return saved_by_layer(layer.evolve(mixer=layer.mixer.evolve(**changes)), 64, BF16, "flash").attention


def test_norms_of_queries_and_keys_keep_what_they_read_and_write():
    # Of 64 + 32 elements the fp32 input and the 16-bit values, and a root for each of 4 + 2 heads.
    assert attention_bytes(qk_norm="head") - attention_bytes() == (4 + 2) * (64 + 32) + 4 * (4 + 2)


def test_rotated_queries_and_keys_do_not_free_the_matrix_that_holds_the_values():
    assert attention_bytes(fused_qkv=True) - attention_bytes() == 2 * (64 + 32)
    assert attention_bytes(fused_qkv=True, rotary=False) == attention_bytes(rotary=False)


@pytest.mark.parametrize(("parallel", "norms", "has_own"), [(False, 2, True), (True, 2, False), (False, 1, False)])
def test_a_norm_before_the_feed_forward_block_is_only_that_of_a_second_step(parallel, norms, *, has_own):
    layer = small_llama().main.groups[0].layer.evolve(parallel=parallel, norm_count=norms)
    norm_and_output = (4 + 2) * 64 + 4 + 2 * 64
    assert feed_forward_norm_and_readers_bytes(layer, 64, BF16) == (norm_and_output if has_own else 0)


def test_a_layer_of_states_keeps_its_expanded_stream():
    mixer = StateMixer(name="mamba", conv_state_elements=1, recurrent_state_elements=1, inner_dim=1000)
    model = small_llama(tie_word_embeddings=True)
    group = model.main.groups[0]
    bare = group.layer.evolve(mixer=mixer, feed_forward=None, norm_count=1)
    only = model.evolve(stacks=(model.main.evolve(groups=(group.evolve(layer=bare),)),))
    found = snapshots(only, sequence_length=100)
    norm = (4 + 2) * 64 + 4 + 2 * 64  # its fp32 input and normalised values, the root, and its output
    outer = (4 + 2) * 64 + 4 + 2 * 64
    assert alive(found, "forward")["activations"] == 100 * (2 * (norm + 4 * 2 * 1000) + outer)
    # The gradients in flight, 4h, are less than the final norm and its output, which are freed by then.
    assert alive(found, "backward", "last layer") == alive(found, "backward", "starts at the head") | {
        "logits": alive(found, "backward", "last layer")["logits"]
    }


@pytest.mark.parametrize(
    ("precision", "each"),
    [
        # BitNet: ReLU and its square, the up projection, the product in fp32, that scaled, and the norm's output.
        (BF16, 2 + 2 + 2 + 4 + 2 + 2),
        (Precision(4, 4, 4, autocast=False), 6 * 4),
        # Squared in fp32: a cast of ReLU's output and the square; product and scaled product are in fp32 as well.
        (Precision(4, 2, 4, autocast=True), 2 + 4 + 4 + 2 + 4 + 4 + 2),
    ],
)
def test_a_norm_before_the_last_projection_keeps_its_input_and_that_scaled(precision, each):
    block = other("bitnet", LLAMA).main.groups[0].layer.feed_forward
    assert feed_forward_bytes(block, 4096, precision) == block.intermediate * each


@pytest.mark.parametrize(("precision", "freed"), [(BF16, 2 + 2), (Precision(4, 4, 4, autocast=False), 4 + 4)])
def test_a_norm_after_squared_relu_squares_in_fp32(precision, freed):
    # The input's first gradient, that of the mean for each element, base, doubled base and product, in fp32, once the
    # norm's output and what it scaled are freed.
    block = other("bitnet", LLAMA).main.groups[0].layer.feed_forward
    held = feed_forward_gradient_bytes(block, 4096, precision, checkpointed=False)
    assert held == block.intermediate * (5 * 4 - freed)


def test_under_autocast_either_square_of_bitnet_takes_as_much():
    block = other("bitnet", LLAMA).main.groups[0].layer.feed_forward
    held = feed_forward_gradient_bytes(block, 4096, AUTOCAST, checkpointed=False)
    assert held == block.intermediate * (4 * 4 - 2) == block.intermediate * (5 * 4 - 4 - 2)


def test_vivits_activation_keeps_seven_tensors_and_its_result():
    # 0.5x · (1 + tanh(0.798x · (1 + 0.0447x · x))): x, three of its multiples, two sums, tanh, and the product
    block = Mlp(intermediate=10, gated=False, activation="gelu-fast")
    assert feed_forward_bytes(block, 4, BF16) == 10 * 8 * 2
    assert feed_forward_gradient_bytes(block, 4, BF16, False) == 10 * 2 * 2


def test_blooms_own_gradient_of_its_activation_has_five_tensors():
    block = Mlp(intermediate=10, gated=False, activation="gelu-bloom")
    assert feed_forward_gradient_bytes(block, 4, BF16, True) == 10 * 5 * 2
