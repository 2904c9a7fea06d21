"""Decoders that mix Mamba with attention: Jamba, Bamba, Granite 4, Falcon-H1."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from planner.models.architecture import Architecture, Layer
from planner.models.readers.blocks import (
    AttentionStyle,
    ForwardBlock,
    MixerBlock,
    MlpStyle,
    attention_blocks,
    mlp_block,
)
from planner.models.readers.decoder.experts import ExpertStyle, forward_blocks, stated_shared
from planner.models.readers.decoder.family import Frame, assemble
from planner.models.readers.decoder.llama_like import BIASED, MLP_BIAS
from planner.models.readers.decoder.moe import GRANITE_EXPERTS
from planner.models.readers.decoder.state_mixers import Scan, mamba2_block, mamba_block
from planner.models.readers.fields import MAX_LAYERS, Fields
from planner.models.readers.parts import RMS, decoder, embedding, norm_tensors
from planner.models.readers.places import unrotated
from planner.models.readers.registry import Reader
from planner.models.readers.sizes import Sizes, read_sizes
from planner.models.readers.towers import repeated

_KERNEL: Final = 4
_EXPAND: Final = 2
_STATE: Final = 256
_HEADS: Final = 128
_FRAME: Final = Frame(norms=("input_layernorm", "pre_ff_layernorm"), final_norm="model.final_layernorm")
_MLP: Final = MlpStyle(prefix="feed_forward.", bias=MLP_BIAS)

_ATTENTION_NAMES: Final = ("attention", "full_attention")
_STATE_NAMES: Final = ("mamba", "linear_attention", "conv")


def attention_layers(fields: Fields, names: Sequence[str], layers: int) -> tuple[bool, ...] | None:
    """Return which layers attend, by a field that names the kind of each; nothing where it is missing."""
    kinds = fields.texts(*names)
    if kinds is None:
        return None
    if len(kinds) != layers or not set(kinds) <= {*_ATTENTION_NAMES, *_STATE_NAMES}:
        fields.fail(names[0], f"must name attention or a mixer with a state for each of the {layers} layers")
    return tuple(kind in _ATTENTION_NAMES for kind in kinds)


def read_jamba(fields: Fields) -> Architecture:
    """Read Jamba: attention in one layer of eight, experts in every other one."""
    sizes = read_sizes(fields)
    attention = attention_blocks(fields, sizes, AttentionStyle(places=unrotated))[0]
    mamba = mamba_block(
        sizes.hidden,
        prefix="mamba.",
        inner=fields.integer("mamba_expand", default=_EXPAND) * sizes.hidden,
        state=fields.integer("mamba_d_state", default=16),
        kernel=fields.integer("mamba_d_conv", default=_KERNEL),
        rank=fields.automatic_integer("mamba_dt_rank", default=math.ceil(sizes.hidden / 16)),
        bias=fields.flag("mamba_proj_bias", default=False),
        conv_bias=fields.flag("mamba_conv_bias", default=True),
        normed=True,
    )
    period = fields.integer("attn_layer_period", default=8)
    offset = fields.integer("attn_layer_offset", default=4, low=0)
    mixers = [attention if place % period == offset else mamba for place in range(sizes.layers)]
    return assemble(fields, sizes, _FRAME, mixers, forward_blocks(fields, sizes, _JAMBA_EXPERTS, _MLP))


def _jamba_sparse(fields: Fields, layers: int) -> tuple[bool, ...]:
    period = fields.integer("expert_layer_period", default=2)
    offset = fields.integer("expert_layer_offset", default=1, low=0)
    several = fields.integer("num_experts", "num_local_experts", default=1, high=MAX_LAYERS) > 1
    return tuple(several and place % period == offset for place in range(layers))


_JAMBA_EXPERTS: Final = ExpertStyle(
    width=("intermediate_size",),
    router="feed_forward.router",
    prefix="feed_forward.experts.{expert}.",
    sparse=_jamba_sparse,
)


def read_bamba(fields: Fields) -> Architecture:
    """Read Bamba: Mamba-2 with attention in the layers that `attn_layer_indices` lists."""
    sizes = read_sizes(fields)
    attention = attention_blocks(fields, sizes, BIASED)[0]
    mamba = _mamba2(fields, sizes)
    attended = attention_layers(fields, ("layers_block_type",), sizes.layers)
    if attended is None:
        listed = frozenset(fields.integers("attn_layer_indices") or ())
        attended = tuple(place in listed for place in range(sizes.layers))
    mixers = [attention if attends else mamba for attends in attended]
    return assemble(fields, sizes, _FRAME, mixers, (mlp_block(fields, sizes, _MLP),) * sizes.layers)


def read_granite_hybrid(fields: Fields) -> Architecture:
    """Read Granite 4: Mamba-2 and attention, with a shared expert and, in the larger ones, routed experts."""
    sizes = read_sizes(fields)
    rotates = fields.text("position_embedding_type", default="nope") == "rope"
    attention = attention_blocks(fields, sizes, BIASED if rotates else replace(BIASED, places=unrotated))[0]
    mamba = _mamba2(fields, sizes)
    names = ("layer_types", "layers_block_type")
    attended = attention_layers(fields, names, sizes.layers) or (False,) * sizes.layers
    mixers = [attention if attends else mamba for attends in attended]
    return assemble(fields, sizes, Frame(), mixers, _granite_forwards(fields, sizes))


def _granite_forwards(fields: Fields, sizes: Sizes) -> tuple[ForwardBlock, ...]:
    if fields.integer("num_local_experts", default=0, low=0, high=MAX_LAYERS):
        experts = replace(GRANITE_EXPERTS, shared=stated_shared("shared_intermediate_size"))
        return forward_blocks(fields, sizes, experts, _MLP)
    names = ("input_linear", "output_linear")
    style = MlpStyle(prefix="shared_mlp.", names=names, fused=True, width=("shared_intermediate_size",))
    return (mlp_block(fields, sizes, style),) * sizes.layers


def read_falcon_h1(fields: Fields) -> Architecture:
    """Read Falcon-H1, whose layers run attention and Mamba-2 beside each other on the same input."""
    sizes = read_sizes(fields)
    attention = attention_blocks(fields, sizes, BIASED)[0]
    out_bias = fields.flag("projectors_bias", default=False)
    normed = fields.flag("mamba_rms_norm", default=False)
    mamba = _mamba2(fields, sizes, inner="mamba_d_ssm", out_bias=out_bias, normed=normed)
    forward = mlp_block(fields, sizes, _MLP)
    norms = (found for name in _FRAME.norms for found in norm_tensors(name, sizes.hidden, RMS))
    layer = Layer(
        mixer=attention.mixer,
        second_mixer=mamba.mixer,
        feed_forward=forward.block,
        norm=RMS,
        norm_count=2,
        tensors=(*attention.tensors, *mamba.tensors, *forward.tensors, *norms),
    )
    return decoder(
        fields,
        hidden=sizes.hidden,
        vocabulary=sizes.vocabulary,
        groups=repeated(layer, sizes.layers),
        before=embedding("model.embed_tokens", sizes.vocabulary, sizes.hidden),
        after=norm_tensors("model.final_layernorm", sizes.hidden, RMS),
        tied=fields.flag("tie_word_embeddings", default=False),
        max_context=sizes.max_context,
    )


def _mamba2(
    fields: Fields, sizes: Sizes, *, inner: str | None = None, out_bias: bool | None = None, normed: bool = True
) -> MixerBlock:
    """Return the Mamba-2 mixer; `inner` names the field of the stream's width, by default twice the hidden one."""
    heads = fields.integer("mamba_n_heads", default=_HEADS, high=MAX_LAYERS)
    expanded = fields.integer("mamba_expand", default=_EXPAND) * sizes.hidden
    width = fields.integer(inner, default=expanded) if inner else expanded
    scan = Scan(
        heads=heads,
        head_dim=fields.automatic_integer("mamba_d_head", default=max(1, width // heads)),
        groups=fields.integer("mamba_n_groups", default=1),
        state=fields.integer("mamba_d_state", default=_STATE),
        kernel=fields.integer("mamba_d_conv", default=_KERNEL),
    )
    return mamba2_block(
        sizes.hidden,
        scan,
        prefix="mamba.",
        bias=fields.flag("mamba_proj_bias", default=False),
        conv_bias=fields.flag("mamba_conv_bias", default=True),
        out_bias=out_bias,
        normed=normed,
    )


READERS: Final[Mapping[str, Reader]] = {
    "bamba": read_bamba,
    "falcon_h1": read_falcon_h1,
    "granitemoehybrid": read_granite_hybrid,
    "jamba": read_jamba,
}
