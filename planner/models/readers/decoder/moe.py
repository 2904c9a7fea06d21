"""Decoders with ordinary attention and routed experts.

**Source**: the modelling code of transformers 5.23; tensor names are those of the published checkpoints.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from planner.models.architecture import Architecture, Attention, Moe, Tensor
from planner.models.readers.blocks import AttentionStyle, ForwardBlock, MixerBlock, MlpStyle, altered, attention_blocks
from planner.models.readers.decoder.experts import (
    ExpertFamily,
    ExpertStyle,
    after_dense_layers,
    counted_shared,
    forward_blocks,
    stated_shared,
    stepped_layers,
)
from planner.models.readers.decoder.family import Frame, assemble
from planner.models.readers.decoder.gpt_like import BARE_LAYER
from planner.models.readers.decoder.llama_like import (
    BIASED,
    FP32_RMS,
    FULLY_NORMED,
    HEAD_NORMED,
    POST_NORMS,
    USE_BIAS,
)
from planner.models.readers.fields import MAX_LAYERS, Fields
from planner.models.readers.parts import ACTIVATIONS, LAYER, qk_norm_tensors, router_tensors
from planner.models.readers.places import (
    chunked,
    even_lower_layers,
    everywhere,
    repeating,
    switched_everywhere,
    upper_layers,
)
from planner.models.readers.registry import Reader
from planner.models.readers.sizes import Sizes, read_sizes

_DEEPSEEK_LIKE: Final = ExpertStyle(fp32_router=True)
MIXTRAL_EXPERTS: Final = ExpertStyle(
    experts=("num_local_experts",),
    width=("intermediate_size",),
    router="block_sparse_moe.gate",
    prefix="block_sparse_moe.experts.{expert}.",
    names=("w1", "w3", "w2"),
)
GRANITE_EXPERTS: Final = replace(
    MIXTRAL_EXPERTS,
    router="block_sparse_moe.router.layer",
    prefix="block_sparse_moe.",
    names=("input_linear.weight", "output_linear.weight"),
    layout="stacked",
    shared_prefix="shared_mlp.",
    shared_names=("input_linear", "output_linear"),
)
_LLAMA4_EXPERTS: Final = ExpertStyle(
    experts=("num_local_experts",),
    width=("intermediate_size",),
    router="feed_forward.router",
    prefix="feed_forward.experts.",
    names=("gate_up_proj", "down_proj"),
    layout="transposed",
    shared=stated_shared("intermediate_size"),
    shared_prefix="feed_forward.shared_expert.",
    every_expert=True,
)


def _weightless_qk_norm(made: MixerBlock) -> MixerBlock:
    rotates = isinstance(made.mixer, Attention) and made.mixer.rotary
    return made._replace(mixer=made.mixer.evolve(qk_norm="bare")) if rotates else made


def _llama4(fields: Fields) -> Architecture:
    """Read Llama 4, whose rotating layers normalise queries and keys without weights."""
    sizes = read_sizes(fields, kv_heads=8, head_dim=128)
    style = replace(BIASED, places=chunked, fp32_softmax=False)
    mixers = attention_blocks(fields, sizes, style)
    if fields.flag("use_qk_norm", default=True):
        mixers = altered(mixers, _weightless_qk_norm)
    experts = replace(_LLAMA4_EXPERTS, sparse=_llama4_layers)
    dense = MlpStyle(prefix="feed_forward.", width=("intermediate_size_mlp",))
    return assemble(fields, sizes, Frame(), mixers, forward_blocks(fields, sizes, experts, dense))


def _llama4_layers(fields: Fields, layers: int) -> tuple[bool, ...]:
    stated = fields.integers("moe_layers")
    if stated is None:
        step = fields.integer("interleave_moe_layer_step", default=1)
        return tuple((place + 1) % step == 0 for place in range(layers))
    listed = frozenset(stated)
    return tuple(place in listed for place in range(layers))


def _ernie_layers(fields: Fields, layers: int) -> tuple[bool, ...]:
    first = fields.integer("moe_layer_start_index", default=1, low=0)
    last = fields.integer("moe_layer_end_index", default=-1, low=-1)
    step = fields.integer("moe_layer_interval", default=1)
    end = layers - 1 if last == -1 else last
    return tuple((place + 1) % step == 0 and first <= place <= end for place in range(layers))


def _gpt_oss(fields: Fields) -> Architecture:
    """Read gpt-oss: learned sinks beside the keys, and experts with biases and a clamped gate.

    Its experts are published in MXFP4 with the output first, which is the order that counts its blocks.
    """
    sizes = read_sizes(fields, kv_heads=8, head_dim=64)
    bias = ("attention_bias", True)
    style = AttentionStyle(
        bias=bias, out_bias=bias, places=repeating(2, 128), sinks=True, fp32_softmax=False, sdpa=False
    )
    sinks = Tensor(name="self_attn.sinks", shape=(sizes.heads,), role="other")
    mixers = altered(attention_blocks(fields, sizes, style), lambda made: made._replace(tensors=(*made.tensors, sinks)))
    experts = ExpertStyle(
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
    return assemble(fields, sizes, Frame(norm=FP32_RMS), mixers, forward_blocks(fields, sizes, experts, MlpStyle()))


def _dbrx(fields: Fields) -> Architecture:
    """Read DBRX, whose attention and experts have objects of their own in the configuration."""
    attention, experts = fields.nested("attn_config"), fields.required("ffn_config")
    kv_heads = 1 if attention is None else attention.integer("kv_n_heads", default=1, high=MAX_LAYERS)
    dropout = 0.0 if attention is None else attention.dropout("attn_pdrop")
    sizes = read_sizes(fields, kv_heads=kv_heads)
    style = AttentionStyle(prefix="norm_attn_norm.attn.", names=("Wqkv", "out_proj"), dropout=dropout)
    frame = Frame(
        norm=BARE_LAYER,
        norms=("norm_attn_norm.norm_1", "norm_attn_norm.norm_2"),
        embedding="transformer.wte",
        final_norm="transformer.norm_f",
        hidden_dropout=("resid_pdrop", 0.0),
        embedding_dropout=("emb_pdrop", 0.0),
    )
    forward = _dbrx_experts(experts, sizes)
    return assemble(fields, sizes, frame, attention_blocks(fields, sizes, style), (forward,) * sizes.layers)


def _dbrx_experts(fields: Fields, sizes: Sizes) -> ForwardBlock:
    count = fields.integer("moe_num_experts", default=4, high=MAX_LAYERS)
    act = fields.nested("ffn_act_fn")
    moe = Moe(
        experts=count,
        top_k=fields.integer("moe_top_k", default=1, high=count),
        intermediate=fields.integer("ffn_hidden_size", default=3584),
        activation="silu" if act is None else act.choice("name", among=ACTIVATIONS, default="silu"),
    )
    routed = tuple(
        Tensor(
            name=f"ffn.experts.mlp.{name}", shape=(moe.intermediate, sizes.hidden), role="expert", copies=moe.experts
        )
        for name in ("w1", "v1", "w2")
    )
    return ForwardBlock(moe, (*router_tensors("ffn.router.layer", count, sizes.hidden), *routed))


_HUNYUAN_NORMS: Final = partial(qk_norm_tensors, names=("query_layernorm", "key_layernorm"))

READERS: Final[Mapping[str, Reader]] = {
    "mixtral": ExpertFamily(attention=AttentionStyle(places=everywhere()), experts=MIXTRAL_EXPERTS, kv_heads=8).read,
    "minimax_m2": ExpertFamily(
        attention=AttentionStyle(qk_norm="all"), experts=MIXTRAL_EXPERTS, kv_heads=8, head_dim=128
    ).read,
    "phimoe": ExpertFamily(
        frame=Frame(norm=LAYER, head_bias=("lm_head_bias", False)),
        attention=replace(BIASED, places=everywhere()),
        experts=MIXTRAL_EXPERTS,
        kv_heads=8,
    ).read,
    "granitemoe": ExpertFamily(attention=BIASED, experts=GRANITE_EXPERTS).read,
    "granitemoeshared": ExpertFamily(
        attention=BIASED, experts=replace(GRANITE_EXPERTS, shared=stated_shared("shared_intermediate_size", 1024))
    ).read,
    "qwen2_moe": ExpertFamily(
        attention=AttentionStyle(bias=("qkv_bias", True), places=even_lower_layers),
        experts=ExpertStyle(
            sparse=stepped_layers,
            shared=stated_shared("shared_expert_intermediate_size", 5632),
            shared_prefix="mlp.shared_expert.",
            shared_gate="mlp.shared_expert_gate",
        ),
        kv_heads=16,
    ).read,
    "qwen3_moe": ExpertFamily(attention=replace(HEAD_NORMED, places=switched_everywhere), kv_heads=4).read,
    "olmoe": ExpertFamily(attention=FULLY_NORMED, experts=ExpertStyle(width=("intermediate_size",))).read,
    "flex_olmo": ExpertFamily(
        frame=Frame(norm=FP32_RMS, norms=POST_NORMS, post_norms=True),
        attention=FULLY_NORMED,
        experts=ExpertStyle(width=("intermediate_size",)),
    ).read,
    "glm4_moe": ExpertFamily(
        attention=replace(HEAD_NORMED, out_bias=False, qk_norm_when=("use_qk_norm", False), heads_first=True),
        experts=replace(_DEEPSEEK_LIKE, sparse=after_dense_layers(1), shared=counted_shared("n_shared_experts", 1)),
        kv_heads=8,
    ).read,
    "dots1": ExpertFamily(
        attention=replace(HEAD_NORMED, places=upper_layers),
        experts=replace(_DEEPSEEK_LIKE, sparse=after_dense_layers(0), shared=counted_shared("n_shared_experts", 0)),
        kv_heads=32,
    ).read,
    "ernie4_5_moe": ExpertFamily(
        frame=Frame(tied=True, head_bias=USE_BIAS),
        attention=AttentionStyle(bias=USE_BIAS, out_bias=USE_BIAS),
        mlp=MlpStyle(bias=USE_BIAS),
        experts=ExpertStyle(
            experts=("moe_num_experts",),
            top_k=("moe_k",),
            correction="mlp.moe_statics.e_score_correction_bias",
            sparse=_ernie_layers,
            shared=counted_shared("moe_num_shared_experts", 2),
            shared_bias=USE_BIAS,
        ),
        kv_heads=4,
    ).read,
    "hunyuan_v1_moe": ExpertFamily(
        attention=replace(HEAD_NORMED, qk_tensors=_HUNYUAN_NORMS),
        experts=ExpertStyle(
            experts=("num_experts",),
            top_k=("moe_topk",),
            width=("intermediate_size",),
            router="mlp.gate.wg",
            shared=stated_shared("intermediate_size"),
            shared_prefix="mlp.shared_mlp.",
        ),
    ).read,
    "llama4_text": _llama4,
    "gpt_oss": _gpt_oss,
    "dbrx": _dbrx,
}
