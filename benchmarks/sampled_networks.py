"""Networks of the families that have a reader, with sizes and options drawn at random in realistic proportions."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

Fields = dict[str, Any]

_ROUTED: Final = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "num_experts_per_tok")
_OWN_HEAD: Final = ("falcon",)
"""Whose width of a head is that of the network over their number."""
_PLAIN_MLP: Final = ("gpt2", "gpt_neo", "gptj", "codegen", "gpt_neox", "gpt_bigcode", "bloom", "mpt", "falcon")
_MULTI_HEAD: Final = (*_PLAIN_MLP, "opt", "phi", "olmo", "persimmon", "deepseek_v2", "deepseek_v3")
_FLAGS: Final = ("attention_bias", "mlp_bias", "qkv_bias", "use_qkv_bias", "use_bias", "use_qk_norm", "qk_layernorm")
_KINDS: Final = {
    "dense": "llama mistral ministral ministral3 qwen2 qwen3 gemma gemma2 gemma3_text phi phi3 olmo olmo2 olmo3 cohere "
    "cohere2 glm glm4 granite starcoder2 stablelm nemotron persimmon helium smollm3 exaone4 arcee seed_oss ernie4_5 "
    "hunyuan_v1_dense bitnet gpt2 gpt_neo gpt_neox gptj codegen gpt_bigcode opt bloom mpt falcon",
    "experts": "mixtral qwen2_moe qwen3_moe olmoe flex_olmo deepseek_v2 deepseek_v3 gpt_oss llama4_text phimoe "
    "granitemoe granitemoeshared glm4_moe ernie4_5_moe hunyuan_v1_moe dots1 minimax_m2",
    "states": "mamba mamba2 falcon_mamba jamba bamba rwkv recurrent_gemma granitemoehybrid falcon_h1 nemotron_h lfm2 "
    "qwen3_next qwen3_5_text minimax",
    "encoder": "bert roberta xlm-roberta camembert albert distilbert electra deberta-v2 mpnet modernbert nomic_bert "
    "jina_embeddings_v3",
    "encoder-decoder": "t5 mt5 umt5 bart mbart pegasus marian blenderbot blenderbot-small m2m_100 whisper",
    "vision": "vit deit beit dinov2 dinov2_with_registers dinov3_vit siglip_vision_model clip_vision_model vivit",
}
FAMILIES: Final = {name: kind for kind, names in _KINDS.items() for name in names.split()}
"""Kind of each model type that is drawn."""


def drawn_config(model_type: str, draw: Random) -> Fields:
    """Return the configuration of a network of `model_type` with drawn sizes, as transformers writes it.

    Raises:
        ValueError: If transformers refuses the drawn sizes, which do not go together.
    """
    from transformers import AutoConfig

    defaults = AutoConfig.for_model(model_type)
    sizes = _sizes(model_type, draw)
    known = {name: value for name, value in sizes.items() if hasattr(defaults, name)}
    flags = {name: draw.random() < 0.5 for name in _FLAGS if isinstance(getattr(defaults, name, None), bool)}
    dropouts = _dropouts(defaults.to_dict(), draw)
    try:
        config = AutoConfig.for_model(model_type, **known | flags | dropouts | _special(model_type, known, draw))
    except Exception as error:  # configuration classes refuse in their own ways
        raise ValueError(f"{model_type}: {error}") from error
    return config.to_dict() | {"model_type": model_type}


def _sizes(model_type: str, draw: Random) -> Fields:
    """Return sizes under the names that most configurations have."""
    head = draw.choice((32, 64, 80, 96, 128))
    key_heads = draw.choice((1, 2, 4))
    heads = key_heads * draw.choice((2, 3, 4))
    if model_type == "codegen":  # its projections are in four parts, whatever the configuration says
        heads = 4 * draw.choice((1, 2))
    if model_type in _MULTI_HEAD:
        key_heads = heads
    hidden = heads * head
    inner = 4 * hidden if model_type in _PLAIN_MLP else 32 * round(hidden * draw.uniform(2, 4.5) / 32)
    layers = draw.randint(2, 4)
    own = {} if model_type in _OWN_HEAD else {"head_dim": head}
    return own | {
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": key_heads,
        "vocab_size": 64 * draw.randint(60, 600),
        "max_position_embeddings": 4096,
        "tie_word_embeddings": draw.random() < 0.5 or "encoder" in FAMILIES[model_type],
        "sliding_window": draw.choice((64, 128, 256)),
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }


def _dropouts(defaults: Mapping[str, Any], draw: Random) -> Fields:
    """Return all dropouts of a configuration as zero, or as they are."""
    names = [name for name, value in defaults.items() if _is_dropout(name) and isinstance(value, float)]
    return dict.fromkeys(names, 0.0) if draw.random() < 0.5 else {}


def _is_dropout(name: str) -> bool:
    return ("drop" in name or name.endswith("pdrop")) and "path" not in name and "layer" not in name


def _special(model_type: str, sizes: Fields, draw: Random) -> Fields:
    """Return what configurations of `model_type` have under names of their own."""
    find = _SPECIAL.get(model_type)
    kind = FAMILIES[model_type]
    shared: Fields = _routed(draw) if kind == "experts" else {}
    return shared | (find(sizes, draw) if find else {})


def _routed(draw: Random) -> Fields:
    experts = draw.choice((4, 8, 16))
    found: Fields = dict.fromkeys(_ROUTED[:4], experts)
    return found | {"num_experts_per_tok": draw.choice((1, 2, 4)), "moe_intermediate_size": 32 * draw.randint(4, 16)}


def _latent(sizes: Fields, draw: Random) -> Fields:
    rope, nope, value = draw.choice((16, 32, 64)), draw.choice((32, 64, 128)), draw.choice((32, 64, 128))
    return {
        "q_lora_rank": draw.choice((None, 128, 192)),
        "kv_lora_rank": draw.choice((64, 128)),
        "qk_rope_head_dim": rope,
        "head_dim": rope,
        "qk_nope_head_dim": nope,
        "v_head_dim": value,
        "n_group": 1,
        "topk_group": 1,
        "first_k_dense_replace": 1,
        "mlp_bias": False,
        "n_shared_experts": draw.choice((1, 2)),
        "num_key_value_heads": sizes["num_attention_heads"],
    }


def _encoder_decoder(sizes: Fields, draw: Random) -> Fields:
    heads = draw.choice((4, 8))
    width = heads * draw.choice((32, 64))
    both = {"layers": draw.randint(2, 4), "ffn_dim": 4 * width, "attention_heads": heads}
    found: Fields = {f"{stack}_{name}": value for name, value in both.items() for stack in ("encoder", "decoder")}
    return found | {
        "d_model": width,
        "decoder_layers": draw.randint(2, 4),
        "encoder_layerdrop": 0.0,
        "decoder_layerdrop": 0.0,
    }


def _t5(sizes: Fields, draw: Random) -> Fields:
    heads = draw.choice((4, 6, 8))
    return {
        "d_model": 64 * draw.choice((4, 6, 8)),
        "d_kv": draw.choice((32, 64)),
        "d_ff": 128 * draw.randint(6, 16),
        "num_layers": draw.randint(2, 4),
        "num_decoder_layers": draw.randint(2, 4),
        "num_heads": heads,
        "feed_forward_proj": draw.choice(("relu", "gated-gelu")),
        "decoder_start_token_id": 0,
    }


def _whisper(sizes: Fields, draw: Random) -> Fields:
    tokens: Fields = {"decoder_start_token_id": 1, "suppress_tokens": None, "begin_suppress_tokens": None}
    found = _encoder_decoder(sizes, draw)
    return found | tokens | {"max_target_positions": 4096, "max_source_positions": draw.choice((300, 1500))}


def _falcon(sizes: Fields, draw: Random) -> Fields:
    new = draw.random() < 0.5
    # The new decoder has its own number of key heads, the old one a single one or all.
    return {
        "new_decoder_architecture": new,
        "multi_query": draw.random() < 0.5,
        "parallel_attn": new or draw.random() < 0.7,
        "num_kv_heads": draw.choice((1, 2)) if new else sizes["num_attention_heads"],
        "bias": draw.random() < 0.3,
        "alibi": False,
        "ffn_hidden_size": 4 * sizes["hidden_size"],
    }


def _mamba(sizes: Fields, draw: Random) -> Fields:
    width = 64 * draw.choice((4, 8, 12))
    head = draw.choice((32, 64))
    return {
        "hidden_size": width,
        "state_size": draw.choice((16, 64, 128)),
        "expand": 2,
        "head_dim": head,
        "num_heads": 2 * width // head,
        "n_groups": draw.choice((1, 2)),
        "intermediate_size": 2 * width,
        "time_step_rank": -(-width // 16),
    }


def _mixer(sizes: Fields, draw: Random) -> Fields:
    heads = draw.choice((4, 8))
    return {
        "hidden_size": 64 * heads,
        "head_dim": 64,
        "num_attention_heads": heads,
        "num_key_value_heads": heads // 2,
        "num_hidden_layers": 4,
        "mamba_n_heads": 2 * heads,
        "mamba_d_head": 64,
        "mamba_d_ssm": 128 * heads,
        "mamba_d_state": draw.choice((16, 64)),
        "mamba_n_groups": 1,
        "mamba_num_heads": 2 * heads,
        "mamba_head_dim": 64,
        "attn_layer_period": 2,
        "attn_layer_offset": 1,
        "attn_layer_indices": [1, 3],
        "num_experts": draw.choice((4, 8)),
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
    }


def _delta(sizes: Fields, draw: Random) -> Fields:
    return {
        "num_hidden_layers": 4,
        "layer_types": None,
        "linear_num_key_heads": draw.choice((2, 4)),
        "linear_num_value_heads": draw.choice((4, 8)),
        "linear_key_head_dim": draw.choice((32, 64)),
        "linear_value_head_dim": 64,
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 256,
        "shared_expert_intermediate_size": 256,
    }


def _image(sizes: Fields, draw: Random) -> Fields:
    heads = draw.choice((3, 6, 8))
    return {
        "hidden_size": 64 * heads,
        "num_attention_heads": heads,
        "intermediate_size": 64 * heads * draw.choice((3, 4)),
        "num_hidden_layers": draw.randint(3, 6),
        "patch_size": draw.choice((14, 16)),
        "image_size": 224,
    }


def _layer_types(sizes: Fields, draw: Random) -> Fields:
    kinds = [draw.choice(("sliding_attention", "full_attention")) for _ in range(sizes["num_hidden_layers"])]
    return {"layer_types": kinds}


_BART: Final = ("bart", "mbart", "pegasus", "marian", "blenderbot", "blenderbot-small", "m2m_100")
_VISION: Final = [name for name, kind in FAMILIES.items() if kind == "vision"]
_SPECIAL: Final[Mapping[str, Callable[[Fields, Random], Fields]]] = {
    **dict.fromkeys(("deepseek_v2", "deepseek_v3"), _latent),
    **dict.fromkeys(_BART, _encoder_decoder),
    **dict.fromkeys(("t5", "mt5", "umt5"), _t5),
    **dict.fromkeys(("mamba", "mamba2", "falcon_mamba"), _mamba),
    **dict.fromkeys(("jamba", "bamba", "granitemoehybrid", "falcon_h1"), _mixer),
    **dict.fromkeys(("qwen3_next", "qwen3_5_text"), _delta),
    **dict.fromkeys(_VISION, _image),
    **dict.fromkeys(("gemma2", "gemma3_text", "gpt_oss", "olmo3", "ministral", "cohere2"), _layer_types),
    "whisper": _whisper,
    "vivit": lambda sizes, draw: _image(sizes, draw) | {"architectures": ["VivitForVideoClassification"]},
    "falcon": _falcon,
    "ernie4_5_moe": lambda sizes, draw: {"moe_k": 2, "moe_num_shared_experts": draw.choice((1, 2))},
    "hunyuan_v1_moe": lambda sizes, draw: {"moe_topk": 2, "num_shared_expert": 1},
    "glm4_moe": lambda sizes, draw: {"n_group": 1, "topk_group": 1, "first_k_dense_replace": 1},
    "dots1": lambda sizes, draw: {
        "n_group": 1,
        "topk_group": 1,
        "first_k_dense_replace": 1,
        "n_shared_experts": draw.choice((1, 2)),
    },
    "qwen2_moe": lambda sizes, draw: {"shared_expert_intermediate_size": 256 * draw.randint(1, 4)},
    "granitemoeshared": lambda sizes, draw: {"shared_intermediate_size": 256 * draw.randint(1, 4)},
    "llama4_text": lambda sizes, draw: {
        "intermediate_size_mlp": sizes["hidden_size"] * 2,
        "interleave_moe_layer_step": draw.choice((1, 2)),
        "attention_chunk_size": 256,
    },
    "opt": lambda sizes, draw: {"ffn_dim": 4 * sizes["hidden_size"], "word_embed_proj_dim": sizes["hidden_size"]},
    "gpt_neo": lambda sizes, draw: {
        "num_layers": 4,
        "num_heads": sizes["num_attention_heads"],
        "num_hidden_layers": 4,
        "attention_types": [[["global", "local"], 2]],
        "window_size": 128,
    },
    "gptj": lambda sizes, draw: {"rotary_dim": sizes["hidden_size"] // sizes["num_attention_heads"] // 2},
    "codegen": lambda sizes, draw: {"rotary_dim": sizes["hidden_size"] // sizes["num_attention_heads"] // 2},
    "gpt_bigcode": lambda sizes, draw: {"multi_query": draw.random() < 0.5},
    "rwkv": lambda sizes, draw: {
        "attention_hidden_size": sizes["hidden_size"],
        "intermediate_size": 4 * sizes["hidden_size"],
    },
    "deberta-v2": lambda sizes, draw: {
        "relative_attention": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_buckets": 64,
        "max_relative_positions": -1,
        "share_att_key": draw.random() < 0.5,
        "norm_rel_ebd": "layer_norm",
        "pooler_hidden_size": sizes["hidden_size"],
    },
    "electra": lambda sizes, draw: {"embedding_size": draw.choice((128, sizes["hidden_size"]))},
    "albert": lambda sizes, draw: {"embedding_size": 128, "intermediate_size": 4 * sizes["hidden_size"]},
    "distilbert": lambda sizes, draw: {"hidden_dim": 4 * sizes["hidden_size"]},
    "minimax": lambda sizes, draw: {
        "layer_types": ["linear_attention", "full_attention"],
        "num_hidden_layers": 2,
        "num_local_experts": 4,
        "block_size": 256,
    },
    "minimax_m2": lambda sizes, draw: {"rotary_dim": sizes.get("head_dim", 64) // 2},
}
"""What is drawn beside the usual sizes."""
