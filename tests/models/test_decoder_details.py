"""What decoders' readers say beyond the tensors: windows, rotation, norms, dropout, and what they refuse."""

from typing import Any

import pytest

from planner.errors import ModelFileError
from planner.models.architecture import (
    Architecture,
    Attention,
    LatentAttention,
    Layer,
    Mlp,
    Moe,
    StateMixer,
)
from planner.models.readers.config_json import read_config

SIZES: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 8,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 100,
    "max_position_embeddings": 4096,
}
EXPERTS: dict[str, Any] = {
    "num_experts": 8,
    "num_local_experts": 8,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
}
LATENT: dict[str, Any] = {
    **EXPERTS,
    "q_lora_rank": 24,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 12,
    "qk_rope_head_dim": 4,
    "v_head_dim": 8,
    "index_n_heads": 2,
    "index_head_dim": 8,
}


def read(model_type: str, **changes: object) -> Architecture:
    return read_config({**SIZES, "model_type": model_type, **changes}, "config.json")


def by_layer(architecture: Architecture) -> list[Layer]:
    placed = [(place, group.layer) for group in architecture.main.groups for place in group.places]
    return [layer for _, layer in sorted(placed, key=lambda item: item[0])]


def attentions(architecture: Architecture) -> list[Attention]:
    mixers = [layer.mixer for layer in by_layer(architecture)]
    assert all(isinstance(mixer, Attention) for mixer in mixers)
    return [mixer for mixer in mixers if isinstance(mixer, Attention)]


def windows(architecture: Architecture) -> list[int | None]:
    return [mixer.window for mixer in attentions(architecture)]


@pytest.mark.parametrize(
    ("model_type", "changes", "expected"),
    [
        ("llama", {"sliding_window": 7}, [None] * 8),
        ("mistral", {}, [4096] * 8),
        ("mistral", {"sliding_window": None}, [None] * 8),
        ("mistral", {"sliding_window": 0}, [None] * 8),
        ("ministral3", {}, [None] * 8),
        ("qwen2", {"sliding_window": 9}, [None] * 8),
        (
            "qwen2",
            {"sliding_window": 9, "use_sliding_window": True, "max_window_layers": 6},
            [None] * 6 + [9] * 2,
        ),
        ("qwen3", {"use_sliding_window": True, "sliding_window": 9, "max_window_layers": 0}, [9] * 8),
        ("gemma2", {"sliding_window": 9}, [9, None] * 4),
        ("gemma3_text", {"sliding_window": 9}, [9] * 5 + [None, 9, 9]),
        ("gemma3_text", {"sliding_window": 9, "sliding_window_pattern": 2}, [9, None] * 4),
        ("olmo3", {}, [4096, 4096, 4096, None] * 2),
        ("olmo3", {"layer_types": ["full_attention"] * 7 + ["sliding_attention"]}, [None] * 7 + [4096]),
        ("qwen2", {"use_sliding_window": True, "layer_types": ["sliding_attention"] * 8}, [4096] * 8),
    ],
)
def test_windows_follow_the_family_and_the_configuration(
    model_type: str, changes: dict[str, object], expected: list[int | None]
) -> None:
    assert windows(read(model_type, **changes)) == expected


def test_qwen2_moe_gives_every_other_lower_layer_a_window() -> None:
    switched = {"use_sliding_window": True, "sliding_window": 9, "max_window_layers": 4}
    assert windows(read("qwen2_moe", **EXPERTS, **switched)) == [9, None, 9] + [None] * 5
    typed = {"use_sliding_window": True, "layer_types": ["sliding_attention"] + ["full_attention"] * 7}
    assert windows(read("qwen2_moe", **EXPERTS, **typed)) == [4096] + [None] * 7
    assert windows(read("qwen3_moe", **EXPERTS, **switched)) == [9] * 8


def test_identical_layers_make_one_group_that_knows_its_places() -> None:
    groups = read("gemma2").main.groups
    assert [group.places for group in groups] == [(0, 2, 4, 6), (1, 3, 5, 7)]
    assert read("gemma2", sliding_window=None).main.groups[0].count == 8


def test_some_families_leave_rotation_out_of_some_layers() -> None:
    assert [mixer.rotary for mixer in attentions(read("cohere2"))] == [True, True, True, False] * 2
    assert [mixer.rotary for mixer in attentions(read("exaone4", sliding_window=None))] == [True] * 8
    assert [mixer.rotary for mixer in attentions(read("smollm3"))] == [True, True, True, False] * 2
    flags = {"no_rope_layers": [0] + [1] * 7, "use_sliding_window": True, "sliding_window": 9}
    assert windows(read("smollm3", **flags)) == [9] + [None] * 7
    scout = attentions(read("llama4_text", **EXPERTS, intermediate_size_mlp=96))
    assert [(mixer.rotary, mixer.window, mixer.qk_norm) for mixer in scout[2:4]] == [
        (True, 8192, "bare"),
        (False, None, "none"),
    ]
    typed = read("llama4_text", **EXPERTS, layer_types=["chunked_attention"] * 8, use_qk_norm=False)
    assert windows(typed) == [8192] * 8


def test_gpt_neo_alternates_unless_its_layers_are_listed() -> None:
    assert windows(read("gpt_neo")) == [None, 256] * 4
    assert windows(read("gpt_neo", attention_layers=["local"] * 8, window_size=9)) == [9] * 8


@pytest.mark.parametrize(
    ("model_type", "changes"),
    [
        ("olmo3", {"layer_types": ["full_attention"]}),
        ("olmo3", {"layer_types": ["quantum_attention"] * 8}),
        ("smollm3", {"no_rope_layers": [1, 0]}),
        ("gpt_neo", {"attention_layers": ["local"] * 3}),
        ("minimax", {**EXPERTS, "layer_types": ["full_attention"] * 3}),
        ("minimax", {**EXPERTS, "layer_types": ["sliding_attention"] * 8}),
        ("deepseek_v3", {**LATENT, "mlp_layer_types": ["dense"]}),
        ("glm_moe_dsa", {**LATENT, "indexer_types": ["full"]}),
        ("glm_moe_dsa", {**LATENT, "indexer_types": ["half"] * 8}),
        ("glm_moe_dsa", {**LATENT, "index_topk_pattern": "FS"}),
        ("glm_moe_dsa", {**LATENT, "index_topk_pattern": "FSXXXXXX"}),
        ("mixtral", {**EXPERTS, "num_experts_per_tok": 9}),
        ("llama", {"head_dim": None, "hidden_size": 65}),
        ("falcon", {"new_decoder_architecture": True, "num_kv_heads": 3}),
        ("gpt2", {"max_position_embeddings": None}),
        ("dbrx", {}),
    ],
    ids=str,
)
def test_contradictions_are_refused(model_type: str, changes: dict[str, object]) -> None:
    with pytest.raises(ModelFileError):
        read(model_type, **changes)


def test_norms_say_how_they_are_computed() -> None:
    llama, gemma, gpt, cohere = (by_layer(read(kind))[0].norm for kind in ("llama", "gemma2", "gpt_neox", "cohere"))
    assert (llama.kind, llama.native, llama.fp32_product) == ("rms", False, False)
    assert (gemma.kind, gemma.native, gemma.fp32_product) == ("rms", False, True)
    assert (gpt.kind, gpt.native, gpt.bias) == ("layer", True, True)
    assert (cohere.kind, cohere.native, cohere.bias) == ("layer", False, False)


@pytest.mark.parametrize(
    ("model_type", "count", "parallel"),
    [
        ("llama", 2, False),
        ("gemma3_text", 4, False),
        ("glm4", 4, False),
        ("olmo", 2, False),
        ("olmo2", 2, False),
        ("bitnet", 3, False),
        ("phi", 1, True),
        ("gptj", 1, True),
        ("gpt_neox", 2, True),
        ("cohere", 1, True),
        ("falcon", 1, True),
        ("stablelm", 2, False),
    ],
)
def test_layers_know_their_norms_and_whether_blocks_run_side_by_side(
    model_type: str, count: int, parallel: bool
) -> None:
    layer = by_layer(read(model_type))[0]
    assert (layer.norm_count, layer.parallel) == (count, parallel)


def test_dropout_defaults_are_those_of_the_configuration_classes() -> None:
    gpt2 = read("gpt2")
    assert gpt2.main.embedding_dropout == by_layer(gpt2)[0].hidden_dropout == attentions(gpt2)[0].dropout == 0.1
    assert attentions(read("llama", attention_dropout=0.2))[0].dropout == 0.2
    assert attentions(read("llama"))[0].dropout == 0.0
    assert by_layer(read("seed_oss"))[0].hidden_dropout == 0.1
    mpt = read("mpt", attn_config={"attn_pdrop": 0.3})
    assert by_layer(mpt)[0].hidden_dropout == attentions(mpt)[0].dropout == 0.3
    assert attentions(read("mpt"))[0].dropout == 0.0


def test_attention_says_how_it_is_implemented() -> None:
    gpt2, llama, bloom, gemma2 = (attentions(read(kind))[0] for kind in ("gpt2", "llama", "bloom", "gemma2"))
    assert (gpt2.fused_qkv, gpt2.rotary, gpt2.fp32_softmax, gpt2.sdpa) == (True, False, False, True)
    assert (llama.fused_qkv, llama.rotary, llama.fp32_softmax, llama.sdpa) == (False, True, True, True)
    assert not bloom.sdpa
    assert not gemma2.sdpa
    assert attentions(read("gpt_oss", **EXPERTS))[0].sinks
    assert attentions(read("gpt_bigcode"))[0].kv_heads == 1
    assert not attentions(read("gpt_bigcode", attention_softmax_in_fp32=False))[0].fp32_softmax


@pytest.mark.parametrize(
    ("model_type", "expected"),
    [
        ("llama", Mlp(intermediate=128, gated=True)),
        ("phi3", Mlp(intermediate=128, gated=True, fused_gate_up=True)),
        ("gemma", Mlp(intermediate=128, gated=True, activation="gelu-tanh")),
        ("gptj", Mlp(intermediate=128, gated=False, activation="gelu-new")),
        ("nemotron", Mlp(intermediate=128, gated=False, activation="relu2")),
        ("bloom", Mlp(intermediate=256, gated=False, activation="gelu-bloom")),
    ],
)
def test_feed_forward_blocks(model_type: str, expected: Mlp) -> None:
    assert by_layer(read(model_type))[0].feed_forward == expected


def test_experts_and_what_one_token_visits() -> None:
    found = read("qwen2_moe", **EXPERTS, shared_expert_intermediate_size=48, decoder_sparse_step=2)
    dense, sparse = by_layer(found)[:2]
    assert isinstance(dense.feed_forward, Mlp)
    assert sparse.feed_forward == Moe(experts=8, top_k=2, intermediate=32, shared_intermediate=48, shared_gate=True)
    routed = 8 * 3 * 64 * 32
    assert found.parameters - found.active_parameters == 4 * routed * 6 // 8


def test_latent_attention_and_its_indexer() -> None:
    layers = by_layer(read("glm_moe_dsa", **LATENT, index_topk_freq=2, num_nextn_predict_layers=1))
    mixers = [layer.mixer for layer in layers]
    assert all(isinstance(mixer, LatentAttention) for mixer in mixers)
    widths = [mixer.indexer_dim for mixer in mixers if isinstance(mixer, LatentAttention)]
    assert widths == [8, 8, 0, 8, 0, 8, 0, 8]
    listed = read("glm_moe_dsa", **LATENT, indexer_types=["full"] + ["shared"] * 7, mlp_layer_types=["sparse"] * 8)
    assert [group.count for group in listed.main.groups] == [1, 7]
    assert "further tokens" in read("deepseek_v3", **LATENT, num_nextn_predict_layers=1).reader_notes[0]
    assert read("deepseek_v3", **LATENT).reader_notes == ()


def test_minimax_mixes_linear_attention_with_softmax_attention() -> None:
    kinds = [type(layer.mixer) for layer in by_layer(read("minimax", **EXPERTS))]
    assert kinds == [Attention, StateMixer] * 4
    typed = read("minimax", **EXPERTS, layer_types=["linear_attention"] * 7 + ["full_attention"])
    assert [type(layer.mixer) for layer in by_layer(typed)] == [StateMixer] * 7 + [Attention]


def test_gemma4_lists_heads_layer_by_layer_or_states_them_once() -> None:
    stated = attentions(read("gemma4_text", global_head_dim=32))
    assert [mixer.head_dim for mixer in stated] == [16] * 5 + [32, 16, 32]
    listed = {"per_layer_config": {"05": {"head_dim": 32}, "7": {"head_dim": 32, "num_key_value_heads": 1}}}
    found = attentions(read("gemma4_text", **listed))
    assert [mixer.head_dim for mixer in found] == [16] * 5 + [32, 16, 32]
    assert found[7].kv_heads == 1
    shared = attentions(read("gemma4_text", num_kv_shared_layers=3))
    assert [mixer.kv_shared for mixer in shared] == [False] * 5 + [True] * 3


def test_a_tied_head_is_listed_once() -> None:
    tied, untied = read("llama", tie_word_embeddings=True), read("llama")
    assert tied.tied_head
    assert tied.head == ()
    assert untied.parameters - tied.parameters == 64 * 100
    assert [tensor.name for tensor in read("phi", tie_word_embeddings=True).head] == ["lm_head.bias"]


def test_dbrx_states_its_blocks_in_objects_of_their_own() -> None:
    found = read("dbrx", attn_config={"kv_n_heads": 2, "attn_pdrop": 0.1}, ffn_config={"ffn_act_fn": {"name": "gelu"}})
    layer = by_layer(found)[0]
    assert isinstance(layer.feed_forward, Moe)
    assert layer.feed_forward.activation == "gelu"
    assert attentions(found)[0].dropout == 0.1
    plain = read("dbrx", num_key_value_heads=1, ffn_config={"moe_num_experts": 2})
    assert attentions(plain)[0].kv_heads == 1


def test_gemma4_may_hold_experts_share_keys_as_values_and_do_without_its_layers_own_embedding() -> None:
    experts = {"enable_moe_block": True, "num_experts": 8, "top_k_experts": 2, "moe_intermediate_size": 32}
    found = read("gemma4_text", **experts, hidden_size_per_layer_input=0)
    layer = by_layer(found)[0]
    assert layer.feed_forward == Moe(
        experts=8, top_k=2, intermediate=32, activation="gelu-tanh", shared_intermediate=128
    )
    assert layer.norm_count == 7
    assert [tensor.name for tensor in found.main.before] == ["model.embed_tokens.weight"]
    same = by_layer(read("gemma4_text", attention_k_eq_v=True, num_global_key_value_heads=1))
    assert [any("v_proj" in tensor.name for tensor in layer.tensors) for layer in same[4:6]] == [True, False]
    assert isinstance(same[5].mixer, Attention)
    assert same[5].mixer.kv_heads == 1
    doubled = by_layer(read("gemma4_text", use_double_wide_mlp=True, num_kv_shared_layers=2))
    widths = [layer.feed_forward.intermediate for layer in doubled if layer.feed_forward]
    assert widths == [128] * 6 + [256] * 2


def test_which_layers_hold_experts() -> None:
    def sparse(architecture: Architecture) -> list[bool]:
        return [isinstance(layer.feed_forward, Moe) for layer in by_layer(architecture)]

    ernie = {"moe_num_experts": 4, "moe_k": 2, "moe_intermediate_size": 32, "moe_layer_interval": 2}
    found = read("ernie4_5_moe", **ernie)
    assert sparse(found) == [False, True] * 4
    assert any(tensor.name.endswith("e_score_correction_bias") for tensor in by_layer(found)[1].tensors)
    assert sparse(read("ernie4_5_moe", **ernie, moe_layer_end_index=3)) == [False, True] * 2 + [False] * 4
    llama4 = {**EXPERTS, "intermediate_size_mlp": 96}
    assert sparse(read("llama4_text", **llama4, moe_layers=[0])) == [True] + [False] * 7
    assert sparse(read("llama4_text", **llama4, interleave_moe_layer_step=2)) == [False, True] * 4
    assert sparse(read("qwen3_moe", **EXPERTS, mlp_only_layers=[0])) == [False] + [True] * 7
    assert sparse(read("glm4_moe", **EXPERTS, first_k_dense_replace=3)) == [False] * 3 + [True] * 5


def test_the_smaller_switches_of_the_gpt_families() -> None:
    assert attentions(read("gpt_bigcode", multi_query=False))[0].kv_heads == 2
    grouped = read("falcon", new_decoder_architecture=True, num_kv_heads=2)
    assert (attentions(grouped)[0].kv_heads, by_layer(grouped)[0].norm_count) == (2, 2)
    plain = read("falcon", multi_query=False, parallel_attn=False, alibi=True)
    assert (attentions(plain)[0].kv_heads, attentions(plain)[0].rotary) == (4, False)
    assert (by_layer(plain)[0].norm_count, by_layer(plain)[0].parallel) == (2, False)
    narrow = read("opt", word_embed_proj_dim=32, do_layer_norm_before=False)
    assert [tensor.name for tensor in narrow.main.after] == ["model.decoder.project_out.weight"]
    assert by_layer(read("opt", layer_norm_elementwise_affine=False))[0].norm_count == 2
    side_by_side = by_layer(read("stablelm", use_parallel_residual=True, qk_layernorm=True))[0]
    assert (side_by_side.norm_count, side_by_side.parallel) == (1, True)


def test_an_indexer_pattern_says_which_layers_choose_their_tokens() -> None:
    found = read("glm_moe_dsa", **LATENT, index_topk_pattern="FSSSFSSS")
    mixers = [layer.mixer for layer in by_layer(found)]
    assert [mixer.indexer_dim for mixer in mixers if isinstance(mixer, LatentAttention)] == [8, 0, 0, 0] * 2
