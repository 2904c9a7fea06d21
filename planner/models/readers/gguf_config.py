"""From the metadata of a GGUF file to the configuration that the readers of Hugging Face models take.

This is the one place that knows llama.cpp's names.

**Source**: llama.cpp conversion (`set_gguf_parameters` of each model class), src/llama-model.cpp (`load_hparams`).
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from planner.models.readers.gguf_head import GgufHead
from planner.models.readers.json_scan import shown

Config = dict[str, object]

_SIGMOID: Final = 2
_INTERVAL: Final = 4


class _Family(NamedTuple):
    """Which reader takes an architecture, and what its configuration has beyond the common fields."""

    model_type: str
    more: Callable[[GgufHead], Config] = lambda _: {}


def config_of(head: GgufHead) -> Config:
    """Return the configuration of the network in a GGUF file.

    Raises:
        ModelFileError: If its architecture is not known here, or a value is missing or cannot be.
    """
    family = _FAMILIES.get(head.architecture)
    if family is None:
        head.fail("general.architecture", f"is {shown(head.architecture)}; known are {', '.join(sorted(_FAMILIES))}")
    return {"model_type": family.model_type, **_common(head), **family.more(head)}


def _common(head: GgufHead) -> Config:
    """Return what nearly every architecture states; readers take of it what they know."""
    heads = head.optional("attention.head_count", low=0)
    biased = head.has("attn_q.bias", "attn_qkv.bias")
    return {
        "hidden_size": head.integer("embedding_length"),
        "num_hidden_layers": head.layers,
        "num_attention_heads": heads,
        "num_key_value_heads": head.optional("attention.head_count_kv") or heads,
        "head_dim": head.optional("attention.key_length"),
        "intermediate_size": head.optional("feed_forward_length", low=0) or None,
        "max_position_embeddings": head.context,
        "vocab_size": head.vocabulary,
        "tie_word_embeddings": not head.has("output.weight"),
        "sliding_window": head.optional("attention.sliding_window", high=10**9),
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
        "moe_intermediate_size": _expert_width(head),
        "first_k_dense_replace": head.optional("leading_dense_block_count", low=0) or 0,
        "n_shared_experts": shared,
        "moe_num_shared_experts": shared,
        "shared_expert_intermediate_size": _shared_width(head),
    }


def _expert_width(head: GgufHead) -> int:
    """Return the width of an expert, which old files leave to their tensors."""
    stated = head.optional("expert_feed_forward_length")
    tensor = head.tensor("ffn_up_exps.weight")
    if stated is None and tensor is not None and len(tensor.shape) == 3:
        return tensor.shape[1]
    return stated or head.integer("feed_forward_length")


def _shared_width(head: GgufHead) -> int:
    tensor = head.tensor("ffn_up_shexp.weight")
    stated = head.optional("expert_shared_feed_forward_length", low=0)
    return stated or (tensor.shape[-1] if tensor is not None else 0)


def _llama(head: GgufHead) -> Config:
    if not head.optional("expert_count", low=0):
        return {}
    return {"model_type": "mixtral", "intermediate_size": _expert_width(head)}


def _experts_only(head: GgufHead) -> Config:
    """Return the width where the configuration names that of an expert like that of a dense block."""
    return {"intermediate_size": _expert_width(head)}


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
    return {"model_type": "olmo3"} if head.optional("attention.sliding_window", high=10**9) else {}


def _granite_moe(head: GgufHead) -> Config:
    shared = _shared_width(head)
    more: Config = {"model_type": "granitemoeshared", "shared_intermediate_size": shared} if shared else {}
    return {**_experts_only(head), **more}


def _llama4(head: GgufHead) -> Config:
    return {
        "intermediate_size": _expert_width(head),
        "intermediate_size_mlp": head.integer("feed_forward_length"),
        "interleave_moe_layer_step": head.optional("interleave_moe_layer_step") or 1,
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
            "ffn_hidden_size": _expert_width(head),
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


_FAMILIES: Final[Mapping[str, _Family]] = {
    "arcee": _Family("arcee"),
    "baichuan": _Family("llama"),
    "bitnet": _Family("bitnet"),
    "bloom": _Family("bloom"),
    "chatglm": _Family("glm"),
    "cohere2": _Family("cohere2"),
    "command-r": _Family("cohere"),
    "dbrx": _Family("dbrx", _dbrx),
    "deepseek2": _Family("deepseek_v3", _deepseek2),
    "dots1": _Family("dots1"),
    "ernie4_5": _Family("ernie4_5"),
    "ernie4_5-moe": _Family("ernie4_5_moe", _ernie_moe),
    "exaone4": _Family("exaone4"),
    "falcon": _Family("falcon", _falcon),
    "gemma": _Family("gemma"),
    "gemma2": _Family("gemma2"),
    "gemma3": _Family("gemma3_text"),
    "glm4": _Family("glm4"),
    "glm4moe": _Family("glm4_moe"),
    "gpt-oss": _Family("gpt_oss", _experts_only),
    "gpt2": _Family("gpt2"),
    "gptj": _Family("gptj"),
    "gptneox": _Family("gpt_neox", _neox),
    "granite": _Family("granite"),
    "granitemoe": _Family("granitemoe", _granite_moe),
    "hunyuan-dense": _Family("hunyuan_v1_dense"),
    "hunyuan-moe": _Family("hunyuan_v1_moe"),
    "internlm2": _Family("llama"),
    "lfm2": _Family("lfm2", _lfm2),
    "llama": _Family("llama", _llama),
    "llama4": _Family("llama4_text", _llama4),
    "mamba": _Family("mamba", _mamba),
    "mamba2": _Family("mamba2", _mamba2),
    "minicpm": _Family("llama", _llama),
    "minimax-m2": _Family("minimax_m2", _experts_only),
    "mistral3": _Family("ministral3"),
    "mpt": _Family("mpt"),
    "nemotron": _Family("nemotron"),
    "olmo": _Family("olmo"),
    "olmo2": _Family("olmo2", _olmo2),
    "olmoe": _Family("olmoe", _experts_only),
    "phi2": _Family("phi"),
    "phi3": _Family("phi3", _whole_context),
    "phimoe": _Family("phimoe", lambda head: {**_whole_context(head), **_experts_only(head)}),
    "qwen2": _Family("qwen2"),
    "qwen2moe": _Family("qwen2_moe"),
    "qwen2vl": _Family("qwen2"),
    "qwen3": _Family("qwen3"),
    "qwen35": _Family("qwen3_5_text", _delta_nets),
    "qwen35moe": _Family("qwen3_5_moe_text", _delta_nets),
    "qwen3moe": _Family("qwen3_moe"),
    "qwen3next": _Family("qwen3_next", _delta_nets),
    "qwen3vl": _Family("qwen3"),
    "qwen3vlmoe": _Family("qwen3_moe"),
    "seed_oss": _Family("seed_oss"),
    "smollm3": _Family("smollm3"),
    "stablelm": _Family("stablelm", _parallel),
    "starcoder": _Family("gpt_bigcode", _multi_query),
    "starcoder2": _Family("starcoder2", _starcoder2),
    "xverse": _Family("llama"),
}
"""Which reader takes each architecture that llama.cpp names."""
