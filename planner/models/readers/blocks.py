"""The sizes of a stack and the two blocks of its layers, each described by a style that a configuration fills."""

from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

from planner.models.architecture import Attention, Layer, Mixer, Mlp, Moe, Norm
from planner.models.readers.fields import MAX_LAYERS, Fields
from planner.models.readers.parts import (
    ACTIVATIONS,
    LAYER,
    Tensors,
    attention_tensors,
    fused_attention_tensors,
    mlp_tensors,
    norm_tensors,
    qk_norm_tensors,
)
from planner.models.readers.places import Place, Places, full

HIDDEN = ("hidden_size", "n_embd", "d_model")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
CONTEXT = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx", "max_sequence_length")


class Sizes(NamedTuple):
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


def equal_heads(
    fields: Fields,
    *,
    hidden: tuple[str, ...] = ("hidden_size",),
    heads: tuple[str, ...] = ("num_attention_heads",),
    layers: tuple[str, ...] = ("num_hidden_layers",),
) -> Sizes:
    """Read the dimensions of a stack with as many key/value heads as heads, each an equal share of the hidden width.

    Raises:
        ModelFileError: If a field is missing or out of bounds, or the heads do not divide the hidden width.
    """
    width = fields.integer(*hidden)
    count = fields.integer(*heads, high=MAX_LAYERS)
    if width % count:
        fields.fail(heads[0], f"must divide the hidden width {width}, got {count}")
    return Sizes(
        hidden=width,
        layers=fields.integer(*layers, high=MAX_LAYERS),
        heads=count,
        kv_heads=count,
        head_dim=width // count,
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


class AttentionStyle(NamedTuple):
    """How a family writes its attention; the defaults are Llama's.

    `key_bias` is `bias` unless it is said; `qk_tensors` are those of the norms of queries and keys.
    """

    prefix: str = "self_attn."
    names: tuple[str, str] | tuple[str, str, str, str] = ("q_proj", "k_proj", "v_proj", "o_proj")
    bias: Switch = False
    key_bias: Switch | None = None
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
    position_bias: bool = False


class MlpStyle(NamedTuple):
    """How a family writes its feed-forward block; the defaults are Llama's.

    Two names make a plain block, or a gated one whose gate and up are `fused`. `ratio` gives the width of families
    that may leave it out or always have it.
    """

    prefix: str = "mlp."
    names: tuple[str, ...] = ("gate_proj", "up_proj", "down_proj")
    fused: bool = False
    bias: Switch = False
    activation: str = "silu"
    activation_fields: tuple[str, ...] = ACTIVATION_FIELDS
    dropout: Chance = 0.0
    width: tuple[str, ...] = ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size")
    ratio: int | None = None


PLAIN_MLP: Final = MlpStyle(
    names=("fc1", "fc2"),
    bias=True,
    activation="gelu",
    activation_fields=("hidden_act",),
    width=("intermediate_size",),
)
"""The block of most encoders and towers."""


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
    mixer = _attention(fields, sizes, style, place)
    return MixerBlock(mixer, (*_projections(fields, mixer, sizes.hidden, style), *style.qk_tensors(mixer)))


def _attention(fields: Fields, sizes: Sizes, style: AttentionStyle, place: Place) -> Attention:
    return Attention(
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
        position_bias=style.position_bias,
    )


def _projections(fields: Fields, mixer: Attention, hidden: int, style: AttentionStyle) -> Tensors:
    bias, out_bias = switched(fields, style.bias), switched(fields, style.out_bias)
    if len(style.names) == 2:
        return fused_attention_tensors(
            mixer, hidden, prefix=style.prefix, names=style.names, bias=bias, out_bias=out_bias
        )
    key_bias = None if style.key_bias is None else switched(fields, style.key_bias)
    return attention_tensors(
        mixer, hidden, prefix=style.prefix, names=style.names, bias=bias, key_bias=key_bias, out_bias=out_bias
    )


def _width(fields: Fields, sizes: Sizes, style: MlpStyle) -> int:
    default = None if style.ratio is None else style.ratio * sizes.hidden
    return default if default and not fields.has(*style.width) else fields.integer(*style.width)


def dense_mlp(fields: Fields, sizes: Sizes, style: MlpStyle, width: int | None = None) -> Mlp:
    """Return the feed-forward block of a layer without its tensors; `width` is its own where no field states it."""
    return Mlp(
        intermediate=_width(fields, sizes, style) if width is None else width,
        gated=style.fused or len(style.names) == 3,
        activation=fields.choice(*style.activation_fields, among=ACTIVATIONS, default=style.activation),
        fused_gate_up=style.fused,
        dropout=chance(fields, style.dropout),
    )


def mlp_block(fields: Fields, sizes: Sizes, style: MlpStyle) -> ForwardBlock:
    """Return the feed-forward block of a layer."""
    mlp = dense_mlp(fields, sizes, style)
    bias = switched(fields, style.bias)
    return ForwardBlock(mlp, mlp_tensors(mlp, sizes.hidden, prefix=style.prefix, names=style.names, bias=bias))


MoreTensors = Callable[[Fields, Sizes], Tensors]
"""Tensors of a family that no style says."""


def no_tensors(_: Fields, __: Sizes) -> Tensors:
    """Say that there are none."""
    return ()


class LayerStyle(NamedTuple):
    """How a family of encoders or towers writes a whole layer: attention, a feed-forward block, and their norms.

    A layer that also attends to another stack has `cross`, of which only the names and biases count.
    """

    attention: AttentionStyle
    mlp: MlpStyle
    norms: tuple[str, ...]
    norm: Norm = LAYER
    post_norms: bool = False
    dropout: Chance = 0.0
    cross: AttentionStyle | None = None

    def layer(
        self,
        fields: Fields,
        sizes: Sizes,
        *,
        rotary: bool = False,
        window: int | None = None,
        mlp: Mlp | None = None,
        width: int | None = None,
        extra: Tensors = (),
    ) -> Layer:
        """Return the layer, with `extra` tensors.

        `mlp` is its block where the style alone does not say it, or `width` that of its block where no field states it.
        """
        mixer = _attention(fields, sizes, self.attention, Place(window, rotary))
        crossing = mixer.evolve(rotary=False)
        block = dense_mlp(fields, sizes, self.mlp, width) if mlp is None else mlp
        bias = switched(fields, self.mlp.bias)
        return Layer(
            mixer=mixer,
            cross_attention=crossing if self.cross else None,
            feed_forward=block,
            norm=self.norm,
            norm_count=len(self.norms),
            post_norms=self.post_norms,
            hidden_dropout=chance(fields, self.dropout),
            tensors=(
                *_projections(fields, mixer, sizes.hidden, self.attention),
                *self.attention.qk_tensors(mixer),
                *(_projections(fields, crossing, sizes.hidden, self.cross) if self.cross else ()),
                *(found for name in self.norms for found in norm_tensors(name, sizes.hidden, self.norm)),
                *mlp_tensors(block, sizes.hidden, prefix=self.mlp.prefix, names=self.mlp.names, bias=bias),
                *extra,
            ),
        )
