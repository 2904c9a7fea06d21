"""The two blocks of a decoder layer, each described by a style that a configuration fills with numbers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from planner.models.architecture import Attention, Mixer, Mlp, Moe
from planner.models.readers.fields import Fields
from planner.models.readers.parts import (
    ACTIVATIONS,
    Tensors,
    attention_tensors,
    fused_attention_tensors,
    mlp_tensors,
    qk_norm_tensors,
)
from planner.models.readers.places import Place, Places, full
from planner.models.readers.sizes import Sizes

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
