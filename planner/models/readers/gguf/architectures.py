"""Conversion of GGUF metadata to the configuration of a Hugging Face model.

Only this module and `header` know llama.cpp's names.

**Source**: llama.cpp conversion (`set_gguf_parameters` of each model class), src/llama-model.cpp (`load_hparams`).
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from planner.models.readers.gguf.header import GgufMetadata
from planner.models.readers.sources import quoted_text

Config = dict[str, object]

_SIGMOID: Final = 2
_MAVERICK_EXPERTS: Final = 128
_INTERVAL: Final = 4


class GgufArchitecture(NamedTuple):
    """Conversion of one llama.cpp architecture: its `model_type`, and functions for its own configuration fields."""

    model_type: str
    more: Callable[[GgufMetadata], Config] = lambda _: {}
    mixed: bool = False


def _llama_config(metadata: GgufMetadata) -> Config:
    if not metadata.optional_integer("expert_count", low=0):
        return {}
    return {"model_type": "mixtral", "intermediate_size": metadata.expert_width}


def _expert_width_config(metadata: GgufMetadata) -> Config:
    """Return the expert width as `intermediate_size`, as some families call it."""
    return {"intermediate_size": metadata.expert_width}


def _falcon_config(metadata: GgufMetadata) -> Config:
    return {
        "new_decoder_architecture": metadata.has("attn_norm_2.weight"),
        "num_kv_heads": metadata.optional_integer("attention.head_count_kv") or 1,
    }


def _full_attention_config(_: GgufMetadata) -> Config:
    """Return a configuration without sliding window, which llama.cpp does not use for Phi-3."""
    return {"sliding_window": None}


def _gemma4_config(metadata: GgufMetadata) -> Config:
    """Return Gemma 4's configuration fields for sliding-window layers, and full-attention layers with wider heads."""
    has_window = metadata.integers("attention.sliding_window_pattern") or ()
    counts = metadata.integers("attention.head_count_kv") or ()
    windowed_heads, full_attention_heads = (
        _kv_heads_by_window(counts, has_window, windowed=True),
        _kv_heads_by_window(counts, has_window, windowed=False),
    )
    table = metadata.tensor("per_layer_token_embd.weight")
    return {
        "layer_types": ["sliding_attention" if narrow else "full_attention" for narrow in has_window] or None,
        "num_key_value_heads": windowed_heads,
        "num_global_key_value_heads": full_attention_heads,
        "attention_k_eq_v": windowed_heads != full_attention_heads,
        "head_dim": metadata.integer("attention.key_length_swa"),
        "global_head_dim": metadata.integer("attention.key_length"),
        "num_kv_shared_layers": metadata.optional_integer("attention.shared_kv_layers", low=0) or 0,
        "hidden_size_per_layer_input": metadata.optional_integer("embedding_length_per_layer_input", low=0) or 0,
        "vocab_size_per_layer_input": None if table is None else table.shape[-1],
        "use_double_wide_mlp": len(set(metadata.integers("feed_forward_length") or ())) > 1,
        "enable_moe_block": bool(metadata.optional_integer("expert_count", low=0)),
        "top_k_experts": metadata.optional_integer("expert_used_count", low=0) or None,
    }


def _kv_heads_by_window(counts: tuple[int, ...], has_window: tuple[int, ...], *, windowed: bool) -> int | None:
    """Return the number of key/value heads in layers with or without a window; a single count applies to all layers."""
    if len(counts) != len(has_window):
        return counts[0] if len(counts) == 1 else None
    return next((count for count, narrow in zip(counts, has_window, strict=True) if bool(narrow) == windowed), None)


def _granite_moe_config(metadata: GgufMetadata) -> Config:
    shared = metadata.shared_width
    more: Config = {"model_type": "granitemoeshared", "shared_intermediate_size": shared} if shared else {}
    return {**_expert_width_config(metadata), **more}


def _llama4_config(metadata: GgufMetadata) -> Config:
    return {
        "intermediate_size": metadata.expert_width,
        "intermediate_size_mlp": metadata.integer("feed_forward_length"),
        "interleave_moe_layer_step": metadata.optional_integer("interleave_moe_layer_step") or 1,
        # Query and key norms have no weights, so the files do not show them: only Maverick, with 128 experts, has none.
        "use_qk_norm": metadata.integer("expert_count") != _MAVERICK_EXPERTS,
    }


def _ernie_moe_config(metadata: GgufMetadata) -> Config:
    return {
        "moe_layer_start_index": metadata.optional_integer("leading_dense_block_count", low=0) or 0,
        "moe_layer_interval": metadata.optional_integer("interleave_moe_layer_step") or 1,
    }


def _dbrx_config(metadata: GgufMetadata) -> Config:
    return {
        "attn_config": {"kv_n_heads": metadata.integer("attention.head_count_kv")},
        "ffn_config": {
            "moe_num_experts": metadata.integer("expert_count"),
            "moe_top_k": metadata.integer("expert_used_count"),
            "ffn_hidden_size": metadata.expert_width,
        },
    }


def _deepseek2_config(metadata: GgufMetadata) -> Config:
    """Return the sizes of latent attention; newer files state the latent width as the key length."""
    rotary = metadata.integer("rope.dimension_count")
    key = metadata.optional_integer("attention.key_length_mla") or metadata.integer("attention.key_length")
    if key <= rotary:
        metadata.fail("attention.key_length", f"must be more than rope.dimension_count, {rotary:,}")
    sigmoid = metadata.optional_integer("expert_gating_func", low=0) == _SIGMOID
    return {
        "model_type": "deepseek_v3" if sigmoid else "deepseek_v2",
        "num_key_value_heads": None,
        "head_dim": None,
        "q_lora_rank": metadata.optional_integer("attention.q_lora_rank", low=0) or None,
        "kv_lora_rank": metadata.integer("attention.kv_lora_rank"),
        "qk_rope_head_dim": rotary,
        "qk_nope_head_dim": key - rotary,
        "v_head_dim": metadata.optional_integer("attention.value_length_mla")
        or metadata.integer("attention.value_length"),
    }


def _mamba_config(metadata: GgufMetadata) -> Config:
    hidden = metadata.integer("embedding_length")
    inner = metadata.integer("ssm.inner_size")
    if inner % hidden:
        metadata.fail("ssm.inner_size", f"must be a multiple of embedding_length, {hidden:,}")
    return {
        "expand": inner // hidden,
        "state_size": metadata.integer("ssm.state_size"),
        "conv_kernel": metadata.integer("ssm.conv_kernel"),
        "time_step_rank": metadata.integer("ssm.time_step_rank"),
        "use_bias": False,
    }


def _mamba2_config(metadata: GgufMetadata) -> Config:
    heads = metadata.integer("ssm.time_step_rank")
    return {
        "num_heads": heads,
        "head_dim": metadata.integer("ssm.inner_size") // heads or None,
        "n_groups": metadata.integer("ssm.group_count"),
        "state_size": metadata.integer("ssm.state_size"),
        "conv_kernel": metadata.integer("ssm.conv_kernel"),
        "use_bias": False,
    }


def _lfm2_config(metadata: GgufMetadata) -> Config:
    """Return the configuration fields of LFM2; layers with key/value heads are attention layers."""
    heads = metadata.integers("attention.head_count_kv") or ()
    return {
        "num_key_value_heads": max(heads, default=None),
        "layer_types": ["full_attention" if count else "conv" for count in heads] or None,
        "conv_L_cache": metadata.integer("shortconv.l_cache"),
        "block_auto_adjust_ff_dim": False,
    }


def _delta_net_config(metadata: GgufMetadata) -> Config:
    """Return the sizes of Qwen's delta nets; llama.cpp states key heads as groups, value heads as time step rank."""
    value_heads = metadata.integer("ssm.time_step_rank")
    return {
        "linear_num_key_heads": metadata.integer("ssm.group_count"),
        "linear_key_head_dim": metadata.integer("ssm.state_size"),
        "linear_num_value_heads": value_heads,
        "linear_value_head_dim": metadata.integer("ssm.inner_size") // value_heads or None,
        "linear_conv_kernel_dim": metadata.integer("ssm.conv_kernel"),
        "full_attention_interval": metadata.optional_integer("full_attention_interval") or _INTERVAL,
    }


GGUF_ARCHITECTURES: Final[Mapping[str, GgufArchitecture]] = {
    "arcee": GgufArchitecture("arcee"),
    "baichuan": GgufArchitecture("llama"),
    "bitnet": GgufArchitecture("bitnet"),
    "bloom": GgufArchitecture("bloom"),
    "chatglm": GgufArchitecture("glm"),
    "cohere2": GgufArchitecture("cohere2"),
    "command-r": GgufArchitecture("cohere"),
    "dbrx": GgufArchitecture("dbrx", _dbrx_config),
    "deepseek2": GgufArchitecture("deepseek_v3", _deepseek2_config),
    "dots1": GgufArchitecture("dots1"),
    "ernie4_5": GgufArchitecture("ernie4_5"),
    "ernie4_5-moe": GgufArchitecture("ernie4_5_moe", _ernie_moe_config),
    "exaone4": GgufArchitecture("exaone4"),
    "falcon": GgufArchitecture("falcon", _falcon_config),
    "gemma": GgufArchitecture("gemma"),
    "gemma2": GgufArchitecture("gemma2"),
    "gemma3": GgufArchitecture("gemma3_text"),
    "gemma4": GgufArchitecture("gemma4_text", _gemma4_config, mixed=True),
    "glm4": GgufArchitecture("glm4"),
    "glm4moe": GgufArchitecture("glm4_moe"),
    "gpt-oss": GgufArchitecture("gpt_oss", _expert_width_config),
    "gpt2": GgufArchitecture("gpt2"),
    "gptj": GgufArchitecture("gptj"),
    "gptneox": GgufArchitecture(
        "gpt_neox",
        lambda metadata: {"use_parallel_residual": metadata.flag("use_parallel_residual") is not False},
    ),
    "granite": GgufArchitecture("granite"),
    "granitemoe": GgufArchitecture("granitemoe", _granite_moe_config),
    "hunyuan-dense": GgufArchitecture("hunyuan_v1_dense"),
    "hunyuan-moe": GgufArchitecture("hunyuan_v1_moe"),
    "internlm2": GgufArchitecture("llama"),
    "lfm2": GgufArchitecture("lfm2", _lfm2_config),
    "llama": GgufArchitecture("llama", _llama_config),
    "llama4": GgufArchitecture("llama4_text", _llama4_config),
    "mamba": GgufArchitecture("mamba", _mamba_config),
    "mamba2": GgufArchitecture("mamba2", _mamba2_config),
    "minicpm": GgufArchitecture("llama", _llama_config),
    "minimax-m2": GgufArchitecture("minimax_m2", _expert_width_config),
    "mistral3": GgufArchitecture("ministral3"),
    "mpt": GgufArchitecture("mpt"),
    "nemotron": GgufArchitecture("nemotron"),
    "olmo": GgufArchitecture("olmo"),
    "olmo2": GgufArchitecture("olmo2", lambda metadata: {"model_type": "olmo3"} if metadata.window else {}),
    "olmoe": GgufArchitecture("olmoe", _expert_width_config),
    "phi2": GgufArchitecture("phi"),
    "phi3": GgufArchitecture("phi3", _full_attention_config),
    "phimoe": GgufArchitecture(
        "phimoe", lambda metadata: {**_full_attention_config(metadata), **_expert_width_config(metadata)}
    ),
    "qwen2": GgufArchitecture("qwen2"),
    "qwen2moe": GgufArchitecture("qwen2_moe"),
    "qwen2vl": GgufArchitecture("qwen2"),
    "qwen3": GgufArchitecture("qwen3"),
    "qwen35": GgufArchitecture("qwen3_5_text", _delta_net_config),
    "qwen35moe": GgufArchitecture("qwen3_5_moe_text", _delta_net_config),
    "qwen3moe": GgufArchitecture("qwen3_moe"),
    "qwen3next": GgufArchitecture("qwen3_next", _delta_net_config),
    "qwen3vl": GgufArchitecture("qwen3"),
    "qwen3vlmoe": GgufArchitecture("qwen3_moe"),
    "seed_oss": GgufArchitecture("seed_oss"),
    "smollm3": GgufArchitecture("smollm3"),
    "stablelm": GgufArchitecture(
        "stablelm",
        lambda metadata: {
            "use_parallel_residual": metadata.flag("use_parallel_residual") or not metadata.has("ffn_norm.weight")
        },
    ),
    "starcoder": GgufArchitecture(
        "gpt_bigcode",
        lambda metadata: {"multi_query": metadata.optional_integer("attention.head_count_kv") == 1},
    ),
    "starcoder2": GgufArchitecture("starcoder2", lambda metadata: {"use_bias": metadata.has("attn_output.bias")}),
    "xverse": GgufArchitecture("llama"),
}
"""Supported architectures by their llama.cpp names."""


def config_from_metadata(metadata: GgufMetadata) -> Config:
    """Return the Hugging Face configuration of the network in a GGUF file.

    Raises:
        ModelFileError: If the architecture is unknown, or a value is missing or invalid.
    """
    family = GGUF_ARCHITECTURES.get(metadata.architecture)
    if family is None:
        metadata.fail(
            "general.architecture",
            f"is {quoted_text(metadata.architecture)}; known are {', '.join(sorted(GGUF_ARCHITECTURES))}",
        )
    return {"model_type": family.model_type, **_common_config(metadata, mixed=family.mixed), **family.more(metadata)}


def _common_config(metadata: GgufMetadata, *, mixed: bool) -> Config:
    """Return the configuration fields that nearly every architecture has; readers ignore fields that they do not know.

    Layers of `mixed` families have different numbers of key/value heads.
    """
    heads = metadata.optional_integer("attention.head_count", low=0)
    biased = metadata.has("attn_q.bias", "attn_qkv.bias")
    return {
        "hidden_size": metadata.integer("embedding_length"),
        "num_hidden_layers": metadata.layers,
        "num_attention_heads": heads,
        "num_key_value_heads": None if mixed else metadata.kv_heads or heads,
        "head_dim": metadata.optional_integer("attention.key_length"),
        "intermediate_size": metadata.dense_width,
        "max_position_embeddings": metadata.context,
        "vocab_size": metadata.vocabulary,
        "tie_word_embeddings": not metadata.has("output.weight"),
        "sliding_window": metadata.window,
        "attention_bias": biased,
        "use_qkv_bias": biased,
        "qkv_bias": biased,
        "use_bias": biased,
        "bias": biased,
        "mlp_bias": metadata.has("ffn_up.bias"),
        "use_qk_norm": metadata.has("attn_q_norm.weight"),
        "qk_layernorm": metadata.has("attn_q_norm.weight"),
        **_expert_config(metadata),
    }


def _expert_config(metadata: GgufMetadata) -> Config:
    count = metadata.optional_integer("expert_count", low=0)
    if not count:
        return {}
    used = metadata.integer("expert_used_count")
    shared = metadata.optional_integer("expert_shared_count", low=0) or 0
    return {
        "num_experts": count,
        "num_local_experts": count,
        "n_routed_experts": count,
        "moe_num_experts": count,
        "num_experts_per_tok": used,
        "moe_k": used,
        "moe_topk": used,
        "moe_intermediate_size": metadata.expert_width,
        "first_k_dense_replace": metadata.optional_integer("leading_dense_block_count", low=0) or 0,
        "n_shared_experts": shared,
        "moe_num_shared_experts": shared,
        "shared_expert_intermediate_size": metadata.shared_width,
    }
