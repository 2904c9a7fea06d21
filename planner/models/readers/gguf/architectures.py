"""From the metadata of a GGUF file to the configuration that the readers of Hugging Face models take.

This and `metadata` are the only places that know llama.cpp's names.

**Source**: llama.cpp conversion (`set_gguf_parameters` of each model class), src/llama-model.cpp (`load_hparams`).
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from planner.models.readers.gguf.metadata import GgufHead
from planner.models.readers.sources import shown

Config = dict[str, object]

_SIGMOID: Final = 2
_MAVERICK_EXPERTS: Final = 128
_INTERVAL: Final = 4


class Family(NamedTuple):
    """Which reader takes an architecture, and what its configuration has beyond the common fields."""

    model_type: str
    more: Callable[[GgufHead], Config] = lambda _: {}
    mixed: bool = False


def _llama(head: GgufHead) -> Config:
    if not head.optional("expert_count", low=0):
        return {}
    return {"model_type": "mixtral", "intermediate_size": head.expert_width}


def _experts_only(head: GgufHead) -> Config:
    """Return the width where the configuration names that of an expert like that of a dense block."""
    return {"intermediate_size": head.expert_width}


def _falcon(head: GgufHead) -> Config:
    return {
        "new_decoder_architecture": head.has("attn_norm_2.weight"),
        "num_kv_heads": head.optional("attention.head_count_kv") or 1,
    }


def _multi_query(head: GgufHead) -> Config:
    return {"multi_query": head.optional("attention.head_count_kv") == 1}


def _parallel(head: GgufHead) -> Config:
    return {"use_parallel_residual": head.flag("use_parallel_residual") or not head.has("ffn_norm.weight")}


def _neox(head: GgufHead) -> Config:
    return {"use_parallel_residual": head.flag("use_parallel_residual") is not False}


def _starcoder2(head: GgufHead) -> Config:
    return {"use_bias": head.has("attn_output.bias")}


def _whole_context(_: GgufHead) -> Config:
    """Leave out the window: llama.cpp switches it off for Phi-3."""
    return {"sliding_window": None}


def _olmo2(head: GgufHead) -> Config:
    return {"model_type": "olmo3"} if head.window else {}


def _gemma4(head: GgufHead) -> Config:
    """Return Gemma 4's two kinds of layers: those with a window, and those that see everything with wider heads."""
    limited = head.each("attention.sliding_window_pattern") or ()
    counts = head.each("attention.head_count_kv") or ()
    few, all_seeing = _by_kind(counts, limited, of_limited=True), _by_kind(counts, limited, of_limited=False)
    table = head.tensor("per_layer_token_embd.weight")
    return {
        "layer_types": ["sliding_attention" if narrow else "full_attention" for narrow in limited] or None,
        "num_key_value_heads": few,
        "num_global_key_value_heads": all_seeing,
        "attention_k_eq_v": few != all_seeing,
        "head_dim": head.integer("attention.key_length_swa"),
        "global_head_dim": head.integer("attention.key_length"),
        "num_kv_shared_layers": head.optional("attention.shared_kv_layers", low=0) or 0,
        "hidden_size_per_layer_input": head.optional("embedding_length_per_layer_input", low=0) or 0,
        "vocab_size_per_layer_input": None if table is None else table.shape[-1],
        "use_double_wide_mlp": len(set(head.each("feed_forward_length") or ())) > 1,
        "enable_moe_block": bool(head.optional("expert_count", low=0)),
        "top_k_experts": head.optional("expert_used_count", low=0) or None,
    }


def _by_kind(counts: tuple[int, ...], limited: tuple[int, ...], *, of_limited: bool) -> int | None:
    """Return the key/value heads of one kind of layers; a single count holds for all."""
    if len(counts) != len(limited):
        return counts[0] if len(counts) == 1 else None
    return next((count for count, narrow in zip(counts, limited, strict=True) if bool(narrow) == of_limited), None)


def _granite_moe(head: GgufHead) -> Config:
    shared = head.shared_width
    more: Config = {"model_type": "granitemoeshared", "shared_intermediate_size": shared} if shared else {}
    return {**_experts_only(head), **more}


def _llama4(head: GgufHead) -> Config:
    return {
        "intermediate_size": head.expert_width,
        "intermediate_size_mlp": head.integer("feed_forward_length"),
        "interleave_moe_layer_step": head.optional("interleave_moe_layer_step") or 1,
        # Its norms of queries and keys have no weights: only Maverick, with 128 experts, has none.
        "use_qk_norm": head.integer("expert_count") != _MAVERICK_EXPERTS,
    }


def _ernie_moe(head: GgufHead) -> Config:
    return {
        "moe_layer_start_index": head.optional("leading_dense_block_count", low=0) or 0,
        "moe_layer_interval": head.optional("interleave_moe_layer_step") or 1,
    }


def _dbrx(head: GgufHead) -> Config:
    return {
        "attn_config": {"kv_n_heads": head.integer("attention.head_count_kv")},
        "ffn_config": {
            "moe_num_experts": head.integer("expert_count"),
            "moe_top_k": head.integer("expert_used_count"),
            "ffn_hidden_size": head.expert_width,
        },
    }


def _deepseek2(head: GgufHead) -> Config:
    """Return the latent's sizes; newer files state the width of the cached latent as that of a key."""
    rotary = head.integer("rope.dimension_count")
    key = head.optional("attention.key_length_mla") or head.integer("attention.key_length")
    if key <= rotary:
        head.fail("attention.key_length", f"must be more than rope.dimension_count, {rotary:,}")
    sigmoid = head.optional("expert_gating_func", low=0) == _SIGMOID
    return {
        "model_type": "deepseek_v3" if sigmoid else "deepseek_v2",
        "num_key_value_heads": None,
        "head_dim": None,
        "q_lora_rank": head.optional("attention.q_lora_rank", low=0) or None,
        "kv_lora_rank": head.integer("attention.kv_lora_rank"),
        "qk_rope_head_dim": rotary,
        "qk_nope_head_dim": key - rotary,
        "v_head_dim": head.optional("attention.value_length_mla") or head.integer("attention.value_length"),
    }


def _mamba(head: GgufHead) -> Config:
    hidden = head.integer("embedding_length")
    inner = head.integer("ssm.inner_size")
    if inner % hidden:
        head.fail("ssm.inner_size", f"must be a multiple of embedding_length, {hidden:,}")
    return {
        "expand": inner // hidden,
        "state_size": head.integer("ssm.state_size"),
        "conv_kernel": head.integer("ssm.conv_kernel"),
        "time_step_rank": head.integer("ssm.time_step_rank"),
        "use_bias": False,
    }


def _mamba2(head: GgufHead) -> Config:
    heads = head.integer("ssm.time_step_rank")
    return {
        "num_heads": heads,
        "head_dim": head.integer("ssm.inner_size") // heads or None,
        "n_groups": head.integer("ssm.group_count"),
        "state_size": head.integer("ssm.state_size"),
        "conv_kernel": head.integer("ssm.conv_kernel"),
        "use_bias": False,
    }


def _lfm2(head: GgufHead) -> Config:
    """Return which layers attend: those that have key/value heads."""
    heads = head.each("attention.head_count_kv") or ()
    return {
        "num_key_value_heads": max(heads, default=None),
        "layer_types": ["full_attention" if count else "conv" for count in heads] or None,
        "conv_L_cache": head.integer("shortconv.l_cache"),
        "block_auto_adjust_ff_dim": False,
    }


def _delta_nets(head: GgufHead) -> Config:
    """Return the sizes of Qwen's delta nets: groups are key heads, the rank of the time step is the value heads."""
    value_heads = head.integer("ssm.time_step_rank")
    return {
        "linear_num_key_heads": head.integer("ssm.group_count"),
        "linear_key_head_dim": head.integer("ssm.state_size"),
        "linear_num_value_heads": value_heads,
        "linear_value_head_dim": head.integer("ssm.inner_size") // value_heads or None,
        "linear_conv_kernel_dim": head.integer("ssm.conv_kernel"),
        "full_attention_interval": head.optional("full_attention_interval") or _INTERVAL,
    }


FAMILIES: Final[Mapping[str, Family]] = {
    "arcee": Family("arcee"),
    "baichuan": Family("llama"),
    "bitnet": Family("bitnet"),
    "bloom": Family("bloom"),
    "chatglm": Family("glm"),
    "cohere2": Family("cohere2"),
    "command-r": Family("cohere"),
    "dbrx": Family("dbrx", _dbrx),
    "deepseek2": Family("deepseek_v3", _deepseek2),
    "dots1": Family("dots1"),
    "ernie4_5": Family("ernie4_5"),
    "ernie4_5-moe": Family("ernie4_5_moe", _ernie_moe),
    "exaone4": Family("exaone4"),
    "falcon": Family("falcon", _falcon),
    "gemma": Family("gemma"),
    "gemma2": Family("gemma2"),
    "gemma3": Family("gemma3_text"),
    "gemma4": Family("gemma4_text", _gemma4, mixed=True),
    "glm4": Family("glm4"),
    "glm4moe": Family("glm4_moe"),
    "gpt-oss": Family("gpt_oss", _experts_only),
    "gpt2": Family("gpt2"),
    "gptj": Family("gptj"),
    "gptneox": Family("gpt_neox", _neox),
    "granite": Family("granite"),
    "granitemoe": Family("granitemoe", _granite_moe),
    "hunyuan-dense": Family("hunyuan_v1_dense"),
    "hunyuan-moe": Family("hunyuan_v1_moe"),
    "internlm2": Family("llama"),
    "lfm2": Family("lfm2", _lfm2),
    "llama": Family("llama", _llama),
    "llama4": Family("llama4_text", _llama4),
    "mamba": Family("mamba", _mamba),
    "mamba2": Family("mamba2", _mamba2),
    "minicpm": Family("llama", _llama),
    "minimax-m2": Family("minimax_m2", _experts_only),
    "mistral3": Family("ministral3"),
    "mpt": Family("mpt"),
    "nemotron": Family("nemotron"),
    "olmo": Family("olmo"),
    "olmo2": Family("olmo2", _olmo2),
    "olmoe": Family("olmoe", _experts_only),
    "phi2": Family("phi"),
    "phi3": Family("phi3", _whole_context),
    "phimoe": Family("phimoe", lambda head: {**_whole_context(head), **_experts_only(head)}),
    "qwen2": Family("qwen2"),
    "qwen2moe": Family("qwen2_moe"),
    "qwen2vl": Family("qwen2"),
    "qwen3": Family("qwen3"),
    "qwen35": Family("qwen3_5_text", _delta_nets),
    "qwen35moe": Family("qwen3_5_moe_text", _delta_nets),
    "qwen3moe": Family("qwen3_moe"),
    "qwen3next": Family("qwen3_next", _delta_nets),
    "qwen3vl": Family("qwen3"),
    "qwen3vlmoe": Family("qwen3_moe"),
    "seed_oss": Family("seed_oss"),
    "smollm3": Family("smollm3"),
    "stablelm": Family("stablelm", _parallel),
    "starcoder": Family("gpt_bigcode", _multi_query),
    "starcoder2": Family("starcoder2", _starcoder2),
    "xverse": Family("llama"),
}
"""Which reader takes each architecture that llama.cpp names."""


def config_of(head: GgufHead) -> Config:
    """Return the configuration of the network in a GGUF file.

    Raises:
        ModelFileError: If its architecture is not known here, or a value is missing or cannot be.
    """
    family = FAMILIES.get(head.architecture)
    if family is None:
        head.fail("general.architecture", f"is {shown(head.architecture)}; known are {', '.join(sorted(FAMILIES))}")
    return {"model_type": family.model_type, **_common(head, mixed=family.mixed), **family.more(head)}


def _common(head: GgufHead, *, mixed: bool) -> Config:
    """Return what nearly every architecture states; readers take of it what they know.

    The layers of `mixed` families differ in their key/value heads.
    """
    heads = head.optional("attention.head_count", low=0)
    biased = head.has("attn_q.bias", "attn_qkv.bias")
    return {
        "hidden_size": head.integer("embedding_length"),
        "num_hidden_layers": head.layers,
        "num_attention_heads": heads,
        "num_key_value_heads": None if mixed else head.kv_heads or heads,
        "head_dim": head.optional("attention.key_length"),
        "intermediate_size": head.dense_width,
        "max_position_embeddings": head.context,
        "vocab_size": head.vocabulary,
        "tie_word_embeddings": not head.has("output.weight"),
        "sliding_window": head.window,
        "attention_bias": biased,
        "use_qkv_bias": biased,
        "qkv_bias": biased,
        "use_bias": biased,
        "bias": biased,
        "mlp_bias": head.has("ffn_up.bias"),
        "use_qk_norm": head.has("attn_q_norm.weight"),
        "qk_layernorm": head.has("attn_q_norm.weight"),
        **_experts(head),
    }


def _experts(head: GgufHead) -> Config:
    count = head.optional("expert_count", low=0)
    if not count:
        return {}
    used = head.integer("expert_used_count")
    shared = head.optional("expert_shared_count", low=0) or 0
    return {
        "num_experts": count,
        "num_local_experts": count,
        "n_routed_experts": count,
        "moe_num_experts": count,
        "num_experts_per_tok": used,
        "moe_k": used,
        "moe_topk": used,
        "moe_intermediate_size": head.expert_width,
        "first_k_dense_replace": head.optional("leading_dense_block_count", low=0) or 0,
        "n_shared_experts": shared,
        "moe_num_shared_experts": shared,
        "shared_expert_intermediate_size": head.shared_width,
    }
