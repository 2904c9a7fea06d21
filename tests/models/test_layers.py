"""Sizes of tensors, attention, states, experts and stacks, computed by hand."""

from planner.models.layers import Attention, Layer, LayerGroup, Mlp, Moe, Norm, Stack, StateMixer, StoredTensors, Tensor

WEIGHT = Tensor(name="w", shape=(4, 6), role="linear", copies=3)


def test_a_tensor_counts_the_elements_of_one_copy_and_of_all():
    assert (WEIGHT.size, WEIGHT.parameters) == (24, 72)


def test_grouped_attention_caches_its_key_heads_unless_they_are_copied():
    grouped = Attention(heads=8, kv_heads=2, head_dim=16)
    assert (grouped.q_dim, grouped.kv_dim, grouped.cached_dim) == (128, 32, 32)
    assert grouped.evolve(grouping="copied").cached_dim == 128


def test_a_convolution_without_its_newest_input_keeps_one_column_less():
    state = StateMixer(name="mamba", conv_state_elements=40, recurrent_state_elements=1, inner_dim=10, conv_kernel=4)
    assert state.conv_inputs_kept == 30
    assert state.evolve(conv_kernel=0).conv_inputs_kept == 40


def test_each_token_visits_the_selected_experts_or_all_of_them():
    moe = Moe(experts=8, top_k=2, intermediate=4)
    assert (moe.visits, moe.evolve(every_expert=True).visits) == (2, 8)


def test_a_stack_counts_its_layers_and_each_tensor_with_its_occurrences():
    layer = Layer(feed_forward=Mlp(intermediate=4, gated=False), norm=Norm(kind="rms"), norm_count=1, tensors=(WEIGHT,))
    patch = Tensor(name="patch", shape=(5, 3, 14, 14), role="conv")
    stack = Stack(name="vision", hidden=6, groups=(LayerGroup(layer=layer, count=2),), before=(patch,))
    assert (stack.layer_count, stack.parameters, stack.patch_side) == (2, 2 * 72 + 5 * 3 * 14 * 14, 14)
    assert list(stack.tensors_with_counts()) == [(patch, 1), (WEIGHT, 6)]


def test_attention_is_plain_unless_it_says_otherwise():
    plain = Attention(heads=8, kv_heads=2, head_dim=16)
    assert (plain.sinks, plain.fp32_softmax, plain.returns_scores, plain.position_bias) == (False, True, False, False)
    assert StoredTensors(format="BF16", place="other", elements=0, bytes=0).bytes == 0
