"""Readers of mixture-of-experts decoders, including those with multi-head latent attention such as DeepSeek.

**Source**: the modelling code of transformers 5.23, DeepSeek-V2 (arXiv:2405.04434) §2.1; tensor names are those of the
published checkpoints. Layers that only predict further tokens (`num_nextn_predict_layers`) are in the checkpoints but
not in these networks, and are not counted.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

from planner.models.architecture import Architecture, Attention, LatentAttention, Moe, Tensor
from planner.models.readers.attention_patterns import (
    alternating_window_pattern,
    chunked_attention,
    same_window_pattern,
    switched_window_everywhere,
    windowed_alternate_layers,
    windowed_upper_layers,
)
from planner.models.readers.blocks import (
    AttentionStyle,
    FeedForwardBlock,
    MixerBlock,
    MlpStyle,
    StackSizes,
    attention_blocks,
    read_sizes,
    transform_blocks,
)
from planner.models.readers.config_fields import MAX_LAYERS, ConfigFields
from planner.models.readers.decoder.assembly import (
    QWEN_EXPERTS,
    DecoderFamily,
    DecoderFrame,
    ExpertStyle,
    assemble_decoder,
    experts_after_dense_layers,
    experts_in_stepped_layers,
    shared_width_from_count,
    shared_width_from_field,
)
from planner.models.readers.decoder.llama_like import BIASED, FULLY_NORMED, HEAD_NORMED, POST_NORMS, USE_BIAS
from planner.models.readers.registry import Reader
from planner.models.readers.tensors import (
    ACTIVATIONS,
    BARE_LAYER,
    FP32_RMS,
    LAYER,
    Tensors,
    latent_tensors,
    linear,
    norm_tensors,
    qk_norm_tensors,
    router_tensors,
)

_INDEXER_KINDS: Final = {"F": True, "S": False, "full": True, "shared": False}


_DEEPSEEK_LIKE: Final = ExpertStyle(fp32_router=True)
MIXTRAL_EXPERTS: Final = ExpertStyle(
    experts=("num_local_experts",),
    width=("intermediate_size",),
    router="block_sparse_moe.gate",
    prefix="block_sparse_moe.experts.{expert}.",
    names=("w1", "w3", "w2"),
)
QWEN_SHARED: Final = ExpertStyle(
    shared=shared_width_from_field("shared_expert_intermediate_size"),
    shared_prefix="mlp.shared_expert.",
    shared_gate="mlp.shared_expert_gate",
)
GRANITE_EXPERTS: Final = MIXTRAL_EXPERTS._replace(
    router="block_sparse_moe.router.layer",
    prefix="block_sparse_moe.",
    names=("input_linear.weight", "output_linear.weight"),
    layout="stacked",
    shared_prefix="shared_mlp.",
    shared_names=("input_linear", "output_linear"),
)


def _latent_family(
    *, dense_layers: int = 3, shared: int = 1, indexer: bool = False, fp32_router: bool = True
) -> DecoderFamily:
    """Return a decoder family with latent attention, dense first layers, and DeepSeek's experts in all others."""
    experts = ExpertStyle(
        fp32_router=fp32_router,
        experts=("n_routed_experts", "num_experts", "num_local_experts"),
        sparse=experts_after_dense_layers(dense_layers),
        shared=shared_width_from_count("n_shared_experts", shared),
    )
    # The head width is not used: that of latent attention is the sum of its two parts.
    return DecoderFamily(
        head_dim=1, mixers=_indexed_mixers if indexer else _latent_mixers, feed_forwards=experts.blocks
    )


def _latent_mixers(fields: ConfigFields, sizes: StackSizes, _: AttentionStyle) -> tuple[MixerBlock, ...]:
    _note_unbuilt_layers(fields)
    return (_latent_attention_block(fields, sizes),) * sizes.layers


def _indexed_mixers(fields: ConfigFields, sizes: StackSizes, _: AttentionStyle) -> tuple[MixerBlock, ...]:
    _note_unbuilt_layers(fields)
    plain, indexed = _latent_attention_block(fields, sizes), _indexed_latent_block(fields, sizes)
    return tuple(indexed if own else plain for own in _indexer_layers(fields, sizes.layers))


def latent_block(fields: ConfigFields, sizes: StackSizes, *, bias: bool, indexer_dim: int = 0) -> MixerBlock:
    """Return multi-head latent attention with its tensors."""
    mixer = LatentAttention(
        heads=sizes.heads,
        q_lora_rank=fields.optional_integer("q_lora_rank"),
        kv_lora_rank=fields.integer("kv_lora_rank"),
        qk_nope_head_dim=fields.integer("qk_nope_head_dim"),
        qk_rope_head_dim=fields.integer("qk_rope_head_dim"),
        v_head_dim=fields.integer("v_head_dim"),
        indexer_dim=indexer_dim,
    )
    return MixerBlock(mixer, latent_tensors(mixer, sizes.hidden, bias=bias))


def _latent_attention_block(fields: ConfigFields, sizes: StackSizes, *, indexer_dim: int = 0) -> MixerBlock:
    return latent_block(fields, sizes, bias=fields.flag("attention_bias", default=False), indexer_dim=indexer_dim)


def _indexed_latent_block(fields: ConfigFields, sizes: StackSizes) -> MixerBlock:
    width = fields.integer("index_head_dim", default=128)
    mixer, tensors = _latent_attention_block(fields, sizes, indexer_dim=width)
    return MixerBlock(mixer, tensors + _indexer_tensors(fields, sizes, width))


def _indexer_tensors(fields: ConfigFields, sizes: StackSizes, width: int) -> Tensors:
    """Return the tensors of the sparse-attention indexer (DeepSeek-V3.2, arXiv:2512.02556 §2.1)."""
    heads = fields.integer("index_n_heads", high=MAX_LAYERS)
    return (
        *linear("self_attn.indexer.wq_b", heads * width, fields.integer("q_lora_rank")),
        *linear("self_attn.indexer.wk", width, sizes.hidden),
        *norm_tensors("self_attn.indexer.k_norm", width, LAYER),
        *linear("self_attn.indexer.weights_proj", heads, sizes.hidden),
    )


def _indexer_layers(fields: ConfigFields, layers: int) -> tuple[bool, ...]:
    """Return for each layer whether it has an indexer of its own, from `indexer_types` or the schedule."""
    stated = fields.texts("indexer_types")
    if stated is None:
        return _scheduled_indexers(fields, layers)
    if len(stated) != layers or not set(stated) <= set(_INDEXER_KINDS):
        fields.fail("indexer_types", f"must say full or shared for each of the {layers} layers")
    return tuple(_INDEXER_KINDS[kind] for kind in stated)


def _scheduled_indexers(fields: ConfigFields, layers: int) -> tuple[bool, ...]:
    """Return for each layer whether it has an indexer, from a pattern of letters or a fixed step."""
    pattern = fields.text("index_topk_pattern", default="")
    if pattern:
        if len(pattern) != layers or not set(pattern) <= {"F", "S"}:
            fields.fail("index_topk_pattern", f"must hold F or S for each of the {layers} layers")
        return tuple(_INDEXER_KINDS[letter] for letter in pattern)
    every = fields.integer("index_topk_freq", default=1)
    offset = fields.integer("index_skip_topk_offset", default=2, low=0)
    return tuple(max(index - offset + 1, 0) % every == 0 for index in range(layers))


def _note_unbuilt_layers(fields: ConfigFields) -> None:
    """Add a note on multi-token prediction layers, which are not counted."""
    extra = fields.integer("num_nextn_predict_layers", default=0, low=0, high=MAX_LAYERS)
    if extra:
        layers = "1 layer that predicts" if extra == 1 else f"{extra:,} layers that predict"
        stored = "is" if extra == 1 else "are"
        fields.note(f"{layers} further tokens {stored} stored in the checkpoint and not counted")


def _with_weightless_qk_norm(block: MixerBlock) -> MixerBlock:
    """Return the attention block with query and key norms without weights if it has rotary embedding."""
    rotates = isinstance(block.mixer, Attention) and block.mixer.rotary
    return block._replace(mixer=block.mixer.evolve(qk_norm="bare")) if rotates else block


def _llama4_mixers(fields: ConfigFields, sizes: StackSizes, style: AttentionStyle) -> tuple[MixerBlock, ...]:
    """Return Llama 4's attention of every layer; layers with rotary embedding norm queries and keys without weights."""
    mixers = attention_blocks(fields, sizes, style)
    return transform_blocks(mixers, _with_weightless_qk_norm) if fields.flag("use_qk_norm", default=True) else mixers


def _llama4_expert_layers(fields: ConfigFields, layers: int) -> tuple[bool, ...]:
    stated = fields.integers("moe_layers")
    if stated is None:
        step = fields.integer("interleave_moe_layer_step", default=1)
        return tuple((index + 1) % step == 0 for index in range(layers))
    listed = frozenset(stated)
    return tuple(index in listed for index in range(layers))


def _ernie_expert_layers(fields: ConfigFields, layers: int) -> tuple[bool, ...]:
    first = fields.integer("moe_layer_start_index", default=1, low=0)
    last = fields.integer("moe_layer_end_index", default=-1, low=-1)
    step = fields.integer("moe_layer_interval", default=1)
    end = layers - 1 if last == -1 else last
    return tuple((index + 1) % step == 0 and first <= index <= end for index in range(layers))


def _sink_tensors(mixer: Attention) -> Tensors:
    return (Tensor(name="self_attn.sinks", shape=(mixer.heads,), role="other"),)


def _read_dbrx(fields: ConfigFields) -> Architecture:
    """Read DBRX, whose configuration has nested objects for attention and experts."""
    attention, experts = fields.nested("attn_config"), fields.required("ffn_config")
    kv_heads = 1 if attention is None else attention.integer("kv_n_heads", default=1, high=MAX_LAYERS)
    dropout = 0.0 if attention is None else attention.dropout("attn_pdrop")
    sizes = read_sizes(fields, kv_heads=kv_heads)
    style = AttentionStyle(prefix="norm_attn_norm.attn.", names=("Wqkv", "out_proj"), dropout=dropout)
    frame = DecoderFrame(
        norm=BARE_LAYER,
        norms=("norm_attn_norm.norm_1", "norm_attn_norm.norm_2"),
        embedding="transformer.wte",
        final_norm="transformer.norm_f",
        hidden_dropout=("resid_pdrop", 0.0),
        embedding_dropout=("emb_pdrop", 0.0),
    )
    count = experts.integer("moe_num_experts", default=4, high=MAX_LAYERS)
    act = experts.nested("ffn_act_fn")
    moe = Moe(
        experts=count,
        top_k=experts.integer("moe_top_k", default=1, high=count),
        intermediate=experts.integer("ffn_hidden_size", default=3584),
        activation="silu" if act is None else act.choice("name", among=ACTIVATIONS, default="silu"),
    )
    routed = tuple(
        Tensor(
            name=f"ffn.experts.mlp.{name}", shape=(moe.intermediate, sizes.hidden), role="expert", copies=moe.experts
        )
        for name in ("w1", "v1", "w2")
    )
    forward = FeedForwardBlock(moe, (*router_tensors("ffn.router.layer", count, sizes.hidden), *routed))
    return assemble_decoder(fields, sizes, frame, attention_blocks(fields, sizes, style), (forward,) * sizes.layers)


_LLAMA4_EXPERTS: Final = ExpertStyle(
    experts=("num_local_experts",),
    width=("intermediate_size",),
    router="feed_forward.router",
    prefix="feed_forward.experts.",
    names=("gate_up_proj", "down_proj"),
    layout="transposed",
    shared=shared_width_from_field("intermediate_size"),
    shared_prefix="feed_forward.shared_expert.",
    every_expert=True,
    sparse=_llama4_expert_layers,
)
# Published in MXFP4 with the output dimension first, the order that determines its blocks.
_GPT_OSS_EXPERTS: Final = ExpertStyle(
    experts=("num_local_experts", "num_experts"),
    width=("intermediate_size",),
    activation="clamped-swiglu",
    router="mlp.router",
    router_bias=True,
    prefix="mlp.experts.",
    names=("gate_up_proj", "down_proj"),
    layout="stacked",
    bias=True,
)
_ATTENTION_BIAS: Final = ("attention_bias", True)
_HUNYUAN_NORMS: Final = partial(qk_norm_tensors, names=("query_layernorm", "key_layernorm"))

_PHIMOE: Final = DecoderFamily(
    frame=DecoderFrame(norm=LAYER, head_bias=("lm_head_bias", False)),
    attention=BIASED._replace(pattern=same_window_pattern()),
    feed_forwards=MIXTRAL_EXPERTS.blocks,
    kv_heads=8,
)


def read_phimoe(fields: ConfigFields) -> Architecture:
    """Read Phi-3.5-MoE, whose router selects two experts, whatever the file says (`sparsemixer`)."""
    return _PHIMOE.read(fields.with_changes({"num_experts_per_tok": 2}))


READERS: Final[Mapping[str, Reader]] = {
    "mixtral": DecoderFamily(
        attention=AttentionStyle(pattern=same_window_pattern()), feed_forwards=MIXTRAL_EXPERTS.blocks, kv_heads=8
    ).read,
    "minimax_m2": DecoderFamily(
        attention=AttentionStyle(qk_norm="all"), feed_forwards=MIXTRAL_EXPERTS.blocks, kv_heads=8, head_dim=128
    ).read,
    "phimoe": read_phimoe,
    "granitemoe": DecoderFamily(attention=BIASED, feed_forwards=GRANITE_EXPERTS.blocks).read,
    "granitemoeshared": DecoderFamily(
        attention=BIASED,
        feed_forwards=GRANITE_EXPERTS._replace(shared=shared_width_from_field("shared_intermediate_size", 1024)).blocks,
    ).read,
    "qwen2_moe": DecoderFamily(
        attention=AttentionStyle(bias=("qkv_bias", True), pattern=windowed_alternate_layers),
        feed_forwards=QWEN_SHARED._replace(
            sparse=experts_in_stepped_layers, shared=shared_width_from_field("shared_expert_intermediate_size", 5632)
        ).blocks,
        kv_heads=16,
    ).read,
    "qwen3_moe": DecoderFamily(
        attention=HEAD_NORMED._replace(pattern=switched_window_everywhere),
        kv_heads=4,
        feed_forwards=QWEN_EXPERTS.blocks,
    ).read,
    "olmoe": DecoderFamily(attention=FULLY_NORMED, feed_forwards=ExpertStyle(width=("intermediate_size",)).blocks).read,
    "flex_olmo": DecoderFamily(
        frame=DecoderFrame(norm=FP32_RMS, norms=POST_NORMS, post_norms=True),
        attention=FULLY_NORMED,
        feed_forwards=ExpertStyle(width=("intermediate_size",)).blocks,
    ).read,
    "glm4_moe": DecoderFamily(
        attention=HEAD_NORMED._replace(out_bias=False, qk_norm_when=("use_qk_norm", False), heads_first=True),
        feed_forwards=_DEEPSEEK_LIKE._replace(
            sparse=experts_after_dense_layers(1), shared=shared_width_from_count("n_shared_experts", 1)
        ).blocks,
        kv_heads=8,
    ).read,
    "dots1": DecoderFamily(
        attention=HEAD_NORMED._replace(pattern=windowed_upper_layers),
        feed_forwards=_DEEPSEEK_LIKE._replace(
            sparse=experts_after_dense_layers(0), shared=shared_width_from_count("n_shared_experts", 0)
        ).blocks,
        kv_heads=32,
    ).read,
    "ernie4_5_moe": DecoderFamily(
        frame=DecoderFrame(tied=True, head_bias=USE_BIAS),
        attention=AttentionStyle(bias=USE_BIAS, out_bias=USE_BIAS),
        mlp=MlpStyle(bias=USE_BIAS),
        feed_forwards=ExpertStyle(
            experts=("moe_num_experts",),
            top_k=("moe_k",),
            correction="mlp.moe_statics.e_score_correction_bias",
            sparse=_ernie_expert_layers,
            shared=shared_width_from_count("moe_num_shared_experts", 2),
            shared_bias=USE_BIAS,
        ).blocks,
        kv_heads=4,
    ).read,
    "hunyuan_v1_moe": DecoderFamily(
        attention=HEAD_NORMED._replace(qk_tensors=_HUNYUAN_NORMS),
        feed_forwards=ExpertStyle(
            experts=("num_experts",),
            top_k=("moe_topk",),
            width=("intermediate_size",),
            router="mlp.gate.wg",
            shared=shared_width_from_field("intermediate_size"),
            shared_prefix="mlp.shared_mlp.",
        ).blocks,
    ).read,
    "llama4_text": DecoderFamily(
        attention=BIASED._replace(pattern=chunked_attention, fp32_softmax=False),
        mlp=MlpStyle(prefix="feed_forward.", width=("intermediate_size_mlp",)),
        kv_heads=8,
        head_dim=128,
        mixers=_llama4_mixers,
        feed_forwards=_LLAMA4_EXPERTS.blocks,
    ).read,
    "gpt_oss": DecoderFamily(
        frame=DecoderFrame(norm=FP32_RMS),
        attention=AttentionStyle(
            bias=_ATTENTION_BIAS,
            out_bias=_ATTENTION_BIAS,
            qk_tensors=_sink_tensors,
            pattern=alternating_window_pattern(2, 128),
            sinks=True,
            fp32_softmax=False,
            sdpa=False,
        ),
        kv_heads=8,
        head_dim=64,
        feed_forwards=_GPT_OSS_EXPERTS.blocks,
    ).read,
    "deepseek_v2": _latent_family(dense_layers=0, shared=2).read,
    "deepseek_v3": _latent_family().read,
    "deepseek_v32": _latent_family(indexer=True).read,
    "glm4_moe_lite": _latent_family(dense_layers=1).read,
    "mistral4": _latent_family(dense_layers=0, fp32_router=False).read,
    "glm_moe_dsa": _latent_family(indexer=True).read,
    "dbrx": _read_dbrx,
}
