"""Configurations, and the metadata that llama.cpp's converter writes for them."""

from typing import NamedTuple

BASE = {
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "vocab_size": 128,
    "max_position_embeddings": 512,
    "tie_word_embeddings": False,
    "sliding_window": None,
}
KEYS = {
    "embedding_length": 64,
    "block_count": 4,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
    "feed_forward_length": 96,
    "context_length": 512,
}
EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 32}
EXPERT_KEYS = {"expert_count": 4, "expert_used_count": 2, "expert_feed_forward_length": 32}
LATENT = {
    "q_lora_rank": 24,
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
    "n_routed_experts": 4,
    "n_shared_experts": 2,
    "first_k_dense_replace": 1,
    "num_key_value_heads": 4,
}
LATENT_KEYS = EXPERT_KEYS | {
    "attention.q_lora_rank": 24,
    "attention.kv_lora_rank": 32,
    "rope.dimension_count": 8,
    "expert_shared_count": 2,
    "leading_dense_block_count": 1,
}
DELTA = {
    "head_dim": 32,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 16,
    "linear_num_value_heads": 4,
    "linear_value_head_dim": 24,
    "linear_conv_kernel_dim": 4,
}
DELTA_KEYS = {
    "attention.key_length": 32,
    "ssm.group_count": 2,
    "ssm.state_size": 16,
    "ssm.time_step_rank": 4,
    "ssm.inner_size": 96,
    "ssm.conv_kernel": 4,
}


NONE: dict[str, object] = {}


class Case(NamedTuple):
    """A configuration, and the metadata and tensors that tell the same beyond the common ones."""

    architecture: str
    model_type: str
    config: dict[str, object] = NONE
    keys: dict[str, object] = NONE
    tensors: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


BIASED = ("blk.0.attn_q.bias", "blk.0.ffn_up.bias", "blk.0.attn_output.bias")
CASES = (
    Case("arcee", "arcee"),
    Case("baichuan", "llama"),
    Case("bitnet", "bitnet"),
    Case("bloom", "bloom", {"intermediate_size": None, "max_position_embeddings": 512}, {"feed_forward_length": 256}),
    Case("chatglm", "glm", {"head_dim": 16}, {"attention.key_length": 16}, ("blk.0.attn_qkv.bias",)),
    Case("cohere2", "cohere2", {"sliding_window": 64}, {"attention.sliding_window": 64}),
    Case("command-r", "cohere"),
    Case("command-r", "cohere", {"use_qk_norm": True}, {}, ("blk.0.attn_q_norm.weight",)),
    Case(
        "dbrx",
        "dbrx",
        {
            "attn_config": {"kv_n_heads": 2},
            "ffn_config": {"moe_num_experts": 4, "moe_top_k": 2, "ffn_hidden_size": 96},
        },
        {"expert_count": 4, "expert_used_count": 2},
    ),
    Case(
        "deepseek2",
        "deepseek_v2",
        EXPERTS | LATENT | {"q_lora_rank": None},
        LATENT_KEYS | {"attention.q_lora_rank": 0, "attention.key_length": 24, "attention.value_length": 16},
    ),
    Case(
        "deepseek2",
        "deepseek_v3",
        EXPERTS | LATENT,
        LATENT_KEYS
        | {
            "attention.key_length": 40,
            "attention.value_length": 32,
            "attention.key_length_mla": 24,
            "attention.value_length_mla": 16,
            "attention.head_count_kv": 1,
            "expert_gating_func": 2,
        },
    ),
    Case(
        "dots1",
        "dots1",
        EXPERTS | {"n_routed_experts": 4, "n_shared_experts": 1, "first_k_dense_replace": 1},
        EXPERT_KEYS | {"expert_shared_count": 1, "leading_dense_block_count": 1},
    ),
    Case("ernie4_5", "ernie4_5", {"head_dim": 16}, {"attention.key_length": 16}),
    Case(
        "ernie4_5-moe",
        "ernie4_5_moe",
        {
            "moe_num_experts": 4,
            "moe_k": 2,
            "moe_intermediate_size": 32,
            "moe_num_shared_experts": 1,
            "moe_layer_start_index": 1,
            "moe_layer_interval": 2,
        },
        EXPERT_KEYS | {"expert_shared_count": 1, "leading_dense_block_count": 1, "interleave_moe_layer_step": 2},
    ),
    Case("exaone4", "exaone4", {"sliding_window": 64}, {"attention.sliding_window": 64}),
    Case("falcon", "falcon", {"multi_query": True}, {"attention.head_count_kv": 1}),
    Case("falcon", "falcon", {"new_decoder_architecture": True, "num_kv_heads": 2}, {}, ("blk.0.attn_norm_2.weight",)),
    Case("gemma", "gemma", {"head_dim": 32}, {"attention.key_length": 32}),
    Case(
        "gemma2",
        "gemma2",
        {"head_dim": 32, "sliding_window": 64},
        {"attention.key_length": 32, "attention.sliding_window": 64},
    ),
    Case(
        "gemma3",
        "gemma3_text",
        {"head_dim": 32, "sliding_window": 64},
        {"attention.key_length": 32, "attention.sliding_window": 64},
    ),
    Case(
        "gemma4",
        "gemma4_text",
        {
            "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"],
            "head_dim": 16,
            "global_head_dim": 32,
            "num_global_key_value_heads": 1,
            "attention_k_eq_v": True,
            "hidden_size_per_layer_input": 0,
            "sliding_window": 64,
        },
        {
            "attention.sliding_window_pattern": [1, 1, 1, 0],
            "attention.head_count_kv": [2, 2, 2, 1],
            "attention.key_length": 32,
            "attention.key_length_swa": 16,
            "attention.sliding_window": 64,
        },
    ),
    Case(
        "gemma4",
        "gemma4_text",
        {
            "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"],
            "head_dim": 16,
            "global_head_dim": 32,
            "num_kv_shared_layers": 2,
            "use_double_wide_mlp": True,
            "hidden_size_per_layer_input": 8,
            "vocab_size_per_layer_input": 128,
            "sliding_window": 64,
        },
        {
            "attention.sliding_window_pattern": [1, 1, 1, 0],
            "attention.shared_kv_layers": 2,
            "attention.key_length": 32,
            "attention.key_length_swa": 16,
            "attention.sliding_window": 64,
            "embedding_length_per_layer_input": 8,
            "feed_forward_length": [96, 96, 192, 192],
        },
        ("per_layer_token_embd.weight", "blk.0.ffn_down.weight"),
    ),
    Case(
        "gemma4",
        "gemma4_text",
        EXPERTS
        | {
            "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"],
            "head_dim": 16,
            "global_head_dim": 32,
            "num_experts": 4,
            "top_k_experts": 2,
            "enable_moe_block": True,
            "hidden_size_per_layer_input": 0,
            "sliding_window": 64,
        },
        EXPERT_KEYS
        | {
            "attention.sliding_window_pattern": [1, 1, 1, 0],
            "attention.key_length": 32,
            "attention.key_length_swa": 16,
            "attention.sliding_window": 64,
        },
    ),
    Case("glm4", "glm4", {"head_dim": 16}, {"attention.key_length": 16}, ("blk.0.attn_q.bias",)),
    Case(
        "glm4moe",
        "glm4_moe",
        EXPERTS
        | {
            "head_dim": 16,
            "n_routed_experts": 4,
            "n_shared_experts": 1,
            "first_k_dense_replace": 1,
            "use_qk_norm": True,
            "attention_bias": True,
        },
        EXPERT_KEYS
        | {
            "attention.key_length": 16,
            "expert_shared_count": 1,
            "leading_dense_block_count": 1,
            "block_count": 5,
            "nextn_predict_layers": 1,
        },
        ("blk.0.attn_q.bias", "blk.0.attn_q_norm.weight"),
    ),
    Case(
        "gpt-oss",
        "gpt_oss",
        {
            "head_dim": 16,
            "intermediate_size": 32,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "sliding_window": 128,
        },
        EXPERT_KEYS | {"attention.key_length": 16, "attention.sliding_window": 128},
        ("blk.0.attn_q.bias",),
        ("feed_forward_length",),
    ),
    Case("gpt2", "gpt2", {"num_key_value_heads": None}, {}, BIASED, ("attention.head_count_kv",)),
    Case("gptj", "gptj", {"num_key_value_heads": None}, {}, (), ("attention.head_count_kv",)),
    Case(
        "gptneox",
        "gpt_neox",
        {"num_key_value_heads": None, "use_parallel_residual": False},
        {"use_parallel_residual": False},
        BIASED,
        ("attention.head_count_kv",),
    ),
    Case("granite", "granite"),
    Case(
        "granitemoe",
        "granitemoe",
        {"intermediate_size": 32, "num_local_experts": 4, "num_experts_per_tok": 2},
        {"expert_count": 4, "expert_used_count": 2, "feed_forward_length": 32},
    ),
    Case(
        "granitemoe",
        "granitemoeshared",
        {"intermediate_size": 32, "num_local_experts": 4, "num_experts_per_tok": 2, "shared_intermediate_size": 48},
        {
            "expert_count": 4,
            "expert_used_count": 2,
            "feed_forward_length": 32,
            "expert_shared_feed_forward_length": 48,
        },
    ),
    Case("hunyuan-dense", "hunyuan_v1_dense", {"head_dim": 16}, {"attention.key_length": 16}),
    Case(
        "hunyuan-moe",
        "hunyuan_v1_moe",
        {"num_experts": 4, "moe_topk": 2},
        {"expert_count": 4, "expert_used_count": 2, "expert_shared_feed_forward_length": 96},
    ),
    Case("internlm2", "llama"),
    Case(
        "lfm2",
        "lfm2",
        {
            "layer_types": ["conv", "conv", "full_attention", "conv"],
            "conv_L_cache": 3,
            "block_auto_adjust_ff_dim": False,
            "tie_word_embeddings": False,
        },
        {"attention.head_count_kv": [0, 0, 2, 0], "shortconv.l_cache": 3},
    ),
    Case("llama", "llama"),
    Case("llama", "llama", {"attention_bias": True, "mlp_bias": True}, {}, BIASED),
    Case("llama", "llama", {"tie_word_embeddings": True}, {}, (), ("output.weight",)),
    Case("llama", "llama", {"head_dim": 32}, {"attention.key_length": 32}),
    Case(
        "llama",
        "mixtral",
        {"num_local_experts": 4, "num_experts_per_tok": 2},
        {"expert_count": 4, "expert_used_count": 2},
    ),
    Case(
        "llama4",
        "llama4_text",
        {
            "intermediate_size": 32,
            "intermediate_size_mlp": 96,
            "num_local_experts": 4,
            "num_experts_per_tok": 1,
            "interleave_moe_layer_step": 2,
            "head_dim": 16,
        },
        EXPERT_KEYS | {"expert_used_count": 1, "interleave_moe_layer_step": 2, "attention.key_length": 16},
    ),
    Case(
        "mamba",
        "mamba",
        {"state_size": 8, "conv_kernel": 4, "expand": 2, "time_step_rank": 4},
        {
            "ssm.inner_size": 128,
            "ssm.state_size": 8,
            "ssm.conv_kernel": 4,
            "ssm.time_step_rank": 4,
            "attention.head_count": 0,
        },
        (),
        ("attention.head_count_kv",),
    ),
    Case(
        "mamba2",
        "mamba2",
        {"state_size": 8, "conv_kernel": 4, "num_heads": 8, "head_dim": 16, "n_groups": 2},
        {
            "ssm.inner_size": 128,
            "ssm.state_size": 8,
            "ssm.conv_kernel": 4,
            "ssm.time_step_rank": 8,
            "ssm.group_count": 2,
        },
    ),
    Case("minicpm", "llama"),
    Case(
        "minimax-m2",
        "minimax_m2",
        {"intermediate_size": 32, "num_local_experts": 4, "num_experts_per_tok": 2, "head_dim": 32},
        EXPERT_KEYS | {"attention.key_length": 32},
    ),
    Case("mistral3", "ministral3", {"head_dim": 32}, {"attention.key_length": 32}),
    Case("mpt", "mpt", {"num_key_value_heads": None}, {}, (), ("attention.head_count_kv",)),
    Case("nemotron", "nemotron"),
    Case("olmo", "olmo"),
    Case("olmo2", "olmo2"),
    Case("olmo2", "olmo3", {"sliding_window": 64}, {"attention.sliding_window": 64}),
    Case(
        "olmoe",
        "olmoe",
        {"num_experts": 4, "num_experts_per_tok": 2},
        {"expert_count": 4, "expert_used_count": 2},
    ),
    Case("phi2", "phi", {}, {}, BIASED),
    Case("phi3", "phi3", {}, {"attention.sliding_window": 64}),
    Case(
        "phimoe",
        "phimoe",
        {"num_local_experts": 4, "num_experts_per_tok": 2},
        {"expert_count": 4, "expert_used_count": 2, "attention.sliding_window": 64},
    ),
    Case("qwen2", "qwen2", {}, {}, ("blk.0.attn_q.bias",)),
    Case("qwen2vl", "qwen2"),
    Case(
        "qwen2moe",
        "qwen2_moe",
        EXPERTS | {"num_experts": 4, "shared_expert_intermediate_size": 48},
        EXPERT_KEYS | {"expert_shared_feed_forward_length": 48},
        ("blk.0.attn_q.bias",),
    ),
    Case("qwen3", "qwen3", {"head_dim": 32}, {"attention.key_length": 32}),
    Case("qwen3vl", "qwen3", {"head_dim": 32}, {"attention.key_length": 32}),
    Case(
        "qwen3moe",
        "qwen3_moe",
        EXPERTS | {"num_experts": 4, "head_dim": 32},
        EXPERT_KEYS | {"attention.key_length": 32},
    ),
    Case(
        "qwen3vlmoe",
        "qwen3_moe",
        EXPERTS | {"num_experts": 4, "head_dim": 32},
        EXPERT_KEYS | {"attention.key_length": 32},
    ),
    Case("qwen35", "qwen3_5_text", DELTA, DELTA_KEYS),
    Case(
        "qwen35moe",
        "qwen3_5_moe_text",
        EXPERTS | DELTA | {"num_experts": 4, "shared_expert_intermediate_size": 32},
        EXPERT_KEYS | DELTA_KEYS | {"expert_shared_feed_forward_length": 32},
    ),
    Case(
        "qwen3next",
        "qwen3_next",
        EXPERTS | DELTA | {"num_experts": 4, "shared_expert_intermediate_size": 32, "full_attention_interval": 2},
        EXPERT_KEYS | DELTA_KEYS | {"expert_shared_feed_forward_length": 32, "full_attention_interval": 2},
    ),
    Case("seed_oss", "seed_oss", {"head_dim": 16, "attention_bias": False}, {"attention.key_length": 16}),
    Case("smollm3", "smollm3"),
    Case("stablelm", "stablelm", {"use_parallel_residual": True}),
    Case(
        "stablelm",
        "stablelm",
        {"use_qkv_bias": True, "qk_layernorm": True},
        {"use_parallel_residual": False},
        ("blk.0.attn_q.bias", "blk.0.attn_q_norm.weight", "blk.0.ffn_norm.weight"),
    ),
    Case("starcoder", "gpt_bigcode", {"multi_query": True}, {"attention.head_count_kv": 1}, BIASED),
    Case("starcoder2", "starcoder2", {}, {}, BIASED),
    Case("xverse", "llama"),
)
