"""Gemma 4: heads by layer, shared keys and values, experts and per-layer embeddings."""

from decoder_cases import attentions, by_layer, tiny

from planner.models.architecture import (
    Attention,
    Moe,
)


def test_heads_are_stated_once_or_listed_by_layer() -> None:
    stated = attentions(tiny("gemma4_text", global_head_dim=32))
    assert [mixer.head_dim for mixer in stated] == [16] * 5 + [32, 16, 32]
    listed = {"per_layer_config": {"05": {"head_dim": 32}, "7": {"head_dim": 32, "num_key_value_heads": 1}}}
    found = attentions(tiny("gemma4_text", **listed))
    assert [mixer.head_dim for mixer in found] == [16] * 5 + [32, 16, 32]
    assert found[7].kv_heads == 1
    shared = attentions(tiny("gemma4_text", num_kv_shared_layers=3))
    assert [mixer.kv_shared for mixer in shared] == [False] * 5 + [True] * 3


def test_experts_shared_keys_and_missing_layer_embeddings() -> None:
    experts = {"enable_moe_block": True, "num_experts": 8, "top_k_experts": 2, "moe_intermediate_size": 32}
    found = tiny("gemma4_text", **experts, hidden_size_per_layer_input=0)
    layer = by_layer(found)[0]
    assert layer.feed_forward == Moe(
        experts=8, top_k=2, intermediate=32, activation="gelu-tanh", shared_intermediate=128
    )
    assert layer.norm_count == 7
    assert [tensor.name for tensor in found.main.before] == ["model.embed_tokens.weight"]
    same = by_layer(tiny("gemma4_text", attention_k_eq_v=True, num_global_key_value_heads=1))
    assert [any("v_proj" in tensor.name for tensor in layer.tensors) for layer in same[4:6]] == [True, False]
    assert isinstance(same[5].mixer, Attention)
    assert same[5].mixer.kv_heads == 1
    doubled = by_layer(tiny("gemma4_text", use_double_wide_mlp=True, num_kv_shared_layers=2))
    widths = [layer.feed_forward.intermediate for layer in doubled if layer.feed_forward]
    assert widths == [128] * 6 + [256] * 2
