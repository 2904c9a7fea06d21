"""The sizes of a stack and the two blocks of its layers, each described by a style that a configuration fills."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from planner.models.architecture import Attention, Mixer, Mlp, Moe
from planner.models.readers.fields import MAX_LAYERS, Fields
from planner.models.readers.parts import (
    ACTIVATIONS,
    Tensors,
    attention_tensors,
    fused_attention_tensors,
    mlp_tensors,
    qk_norm_tensors,
)
from planner.models.readers.places import Place, Places, full

HIDDEN = ("hidden_size", "n_embd", "d_model")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
CONTEXT = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx", "max_sequence_length")


@dataclass(frozen=True)
class Sizes:
    """The dimensions of a stack; those of attention and of the vocabulary are 0 where it has none."""

    hidden: int
    layers: int
    heads: int = 0
    kv_heads: int = 0
    head_dim: int = 0
    vocabulary: int = 0
    max_context: int | None = None


def read_sizes(fields: Fields, *, kv_heads: int | None = None, head_dim: int | None = None) -> Sizes:
    """Read the dimensions; `kv_heads` and `head_dim` are the family's own defaults.

    Without a default there are as many key/value heads as heads, and a head is an equal share of the hidden width.

    Raises:
        ModelFileError: If a field is missing or out of bounds, or the heads do not divide what they must.
    """
    hidden = fields.integer(*HIDDEN)
    heads = fields.integer(*HEADS, high=MAX_LAYERS)
    found_kv_heads = fields.integer("num_key_value_heads", default=kv_heads or heads, high=MAX_LAYERS)
    if heads % found_kv_heads:
        fields.fail("num_key_value_heads", f"must divide the {heads} attention heads, got {found_kv_heads}")
    return Sizes(
        hidden=hidden,
        layers=fields.integer(*LAYERS, high=MAX_LAYERS),
        heads=heads,
        kv_heads=found_kv_heads,
        head_dim=_head_dim(fields, hidden, heads, head_dim),
        vocabulary=fields.integer("vocab_size"),
        max_context=fields.optional_integer(*CONTEXT, high=10**9),
    )


def _head_dim(fields: Fields, hidden: int, heads: int, default: int | None) -> int:
    found = fields.optional_integer("head_dim") or default
    if found is None and hidden % heads:
        fields.fail(HEADS[0], f"must divide the hidden width {hidden}, got {heads}")
    return found or hidden // heads


Switch = bool | tuple[str, bool]
"""Always on or off, or a field of the configuration with the family's default."""

Chance = float | tuple[str, float]
"""A dropout probability, or the field that holds it with the family's default."""

ACTIVATION_FIELDS = ("hidden_activation", "hidden_act", "activation_function", "activation")


class MixerBlock(NamedTuple):
    """A mixer with its tensors."""

    mixer: Mixer
    tensors: Tensors


class ForwardBlock(NamedTuple):
    """A feed-forward block with its tensors."""

    block: Mlp | Moe
    tensors: Tensors


@dataclass(frozen=True)
class AttentionStyle:
    """How a family writes its attention; the defaults are Llama's."""

    prefix: str = "self_attn."
    names: tuple[str, str] | tuple[str, str, str, str] = ("q_proj", "k_proj", "v_proj", "o_proj")
    bias: Switch = False
    out_bias: Switch = False
    qk_norm: Literal["none", "head", "all"] = "none"
    qk_norm_when: Switch = True
    qk_tensors: Callable[[Attention], Tensors] = qk_norm_tensors
    places: Places = full
    dropout: Chance = ("attention_dropout", 0.0)
    sinks: bool = False
    fp32_softmax: bool = True
    sdpa: bool = True
    heads_first: bool = False
    fp32_scores: bool = False
    returns_scores: bool = False
    softcap: bool = False


@dataclass(frozen=True)
class MlpStyle:
    """How a family writes its feed-forward block; the defaults are Llama's.

    Two names make a plain block, or a gated one whose gate and up are `fused`. `ratio` gives the width of families
    that may leave it out or always have it.
    """

    prefix: str = "mlp."
    names: tuple[str, ...] = ("gate_proj", "up_proj", "down_proj")
    fused: bool = False
    bias: Switch = False
    activation: str = "silu"
    width: tuple[str, ...] = ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size")
    ratio: int | None = None


def switched(fields: Fields, switch: Switch) -> bool:
    """Return whether a switch is on."""
    return switch if isinstance(switch, bool) else fields.flag(switch[0], default=switch[1])


def chance(fields: Fields, dropout: Chance) -> float:
    """Return a dropout probability."""
    return dropout if isinstance(dropout, float) else fields.dropout(dropout[0], default=dropout[1])


def attention_blocks(fields: Fields, sizes: Sizes, style: AttentionStyle) -> tuple[MixerBlock, ...]:
    """Return the attention of every layer."""
    places = style.places(fields, sizes.layers)
    made = {place: _attention_block(fields, sizes, style, place) for place in set(places)}
    return tuple(made[place] for place in places)


def altered(blocks: Sequence[MixerBlock], alter: Callable[[MixerBlock], MixerBlock]) -> tuple[MixerBlock, ...]:
    """Return the blocks, each distinct one altered once, however many layers have it."""
    made = {block: alter(block) for block in set(blocks)}
    return tuple(made[block] for block in blocks)


def _attention_block(fields: Fields, sizes: Sizes, style: AttentionStyle, place: Place) -> MixerBlock:
    mixer = Attention(
        heads=sizes.heads,
        kv_heads=sizes.kv_heads,
        head_dim=sizes.head_dim,
        window=place.window,
        qk_norm=style.qk_norm if switched(fields, style.qk_norm_when) else "none",
        fused_qkv=len(style.names) == 2,
        rotary=place.rotary,
        dropout=chance(fields, style.dropout),
        sinks=style.sinks,
        fp32_softmax=style.fp32_softmax,
        sdpa=style.sdpa,
        heads_first=style.heads_first,
        fp32_scores=style.fp32_scores,
        returns_scores=style.returns_scores,
        softcap=style.softcap,
    )
    projections = projection_tensors(
        mixer, sizes.hidden, style, bias=switched(fields, style.bias), out_bias=switched(fields, style.out_bias)
    )
    return MixerBlock(mixer, (*projections, *style.qk_tensors(mixer)))


def projection_tensors(mixer: Attention, hidden: int, style: AttentionStyle, *, bias: bool, out_bias: bool) -> Tensors:
    """Return the projections of attention under the style's names."""
    if len(style.names) == 2:
        return fused_attention_tensors(
            mixer, hidden, prefix=style.prefix, names=style.names, bias=bias, out_bias=out_bias
        )
    return attention_tensors(mixer, hidden, prefix=style.prefix, names=style.names, bias=bias, out_bias=out_bias)


def _width(fields: Fields, sizes: Sizes, style: MlpStyle) -> int:
    default = None if style.ratio is None else style.ratio * sizes.hidden
    return default if default and not fields.has(*style.width) else fields.integer(*style.width)


def dense_mlp(fields: Fields, sizes: Sizes, style: MlpStyle) -> Mlp:
    """Return the feed-forward block of a layer without its tensors."""
    return Mlp(
        intermediate=_width(fields, sizes, style),
        gated=style.fused or len(style.names) == 3,
        activation=fields.choice(*ACTIVATION_FIELDS, among=ACTIVATIONS, default=style.activation),
        fused_gate_up=style.fused,
    )


def mlp_block(fields: Fields, sizes: Sizes, style: MlpStyle) -> ForwardBlock:
    """Return the feed-forward block of a layer."""
    mlp = dense_mlp(fields, sizes, style)
    bias = switched(fields, style.bias)
    return ForwardBlock(mlp, mlp_tensors(mlp, sizes.hidden, prefix=style.prefix, names=style.names, bias=bias))
