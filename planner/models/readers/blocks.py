"""Dimensions, attention and feed-forward blocks of a stack, built from a declarative style and a configuration."""

from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

from planner.models.architecture import Attention, Layer, Mixer, Mlp, Moe, Norm
from planner.models.readers.attention_patterns import AttentionPattern, LayerAttention, full_attention
from planner.models.readers.config_fields import MAX_LAYERS, ConfigFields
from planner.models.readers.tensors import (
    ACTIVATIONS,
    LAYER,
    Tensors,
    attention_tensors,
    fused_attention_tensors,
    mlp_tensors,
    norm_tensors,
    qk_norm_tensors,
)

HIDDEN = ("hidden_size", "n_embd", "d_model")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
CONTEXT = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx", "max_sequence_length")


class StackSizes(NamedTuple):
    """The dimensions of a stack; the number of heads or vocabulary tokens is 0 if the stack has none."""

    hidden: int
    layers: int
    heads: int = 0
    kv_heads: int = 0
    head_dim: int = 0
    vocabulary: int = 0
    max_context: int | None = None


def read_sizes(fields: ConfigFields, *, kv_heads: int | None = None, head_dim: int | None = None) -> StackSizes:
    """Read the dimensions of a stack; `kv_heads` and `head_dim` are the family's defaults.

    Without defaults, `kv_heads` equals the number of heads, and `head_dim` the hidden width divided by it.

    Raises:
        ModelFileError: If a field is missing or out of bounds, or a number of heads is not a divisor as required.
    """
    hidden = fields.integer(*HIDDEN)
    heads = fields.integer(*HEADS, high=MAX_LAYERS)
    stated_kv_heads = fields.integer("num_key_value_heads", default=kv_heads or heads, high=MAX_LAYERS)
    if heads % stated_kv_heads:
        fields.fail("num_key_value_heads", f"must divide the {heads} attention heads, got {stated_kv_heads}")
    return StackSizes(
        hidden=hidden,
        layers=fields.integer(*LAYERS, high=MAX_LAYERS),
        heads=heads,
        kv_heads=stated_kv_heads,
        head_dim=_read_head_dim(fields, hidden, heads, head_dim),
        vocabulary=fields.integer("vocab_size"),
        max_context=fields.optional_integer(*CONTEXT, high=10**9),
    )


def read_equal_head_sizes(
    fields: ConfigFields,
    *,
    hidden: tuple[str, ...] = ("hidden_size",),
    heads: tuple[str, ...] = ("num_attention_heads",),
    layers: tuple[str, ...] = ("num_hidden_layers",),
) -> StackSizes:
    """Read the dimensions of a stack with multi-head attention, where heads × head dimension is the hidden width.

    Raises:
        ModelFileError: If a field is missing or out of bounds, or the heads do not divide the hidden width.
    """
    width = fields.integer(*hidden)
    count = fields.integer(*heads, high=MAX_LAYERS)
    if width % count:
        fields.fail(heads[0], f"must divide the hidden width {width}, got {count}")
    return StackSizes(
        hidden=width,
        layers=fields.integer(*layers, high=MAX_LAYERS),
        heads=count,
        kv_heads=count,
        head_dim=width // count,
    )


def _read_head_dim(fields: ConfigFields, hidden: int, heads: int, default: int | None) -> int:
    stated_head_dim = fields.optional_integer("head_dim") or default
    if stated_head_dim is None and hidden % heads:
        fields.fail(HEADS[0], f"must divide the hidden width {hidden}, got {heads}")
    return stated_head_dim or hidden // heads


FlagSource = bool | tuple[str, bool]
"""A fixed flag, or the name of the configuration field with the flag and the family's default."""

DropoutSource = float | tuple[str, float]
"""A fixed dropout probability, or the name of the configuration field with it and the family's default."""

ACTIVATION_FIELDS = ("hidden_activation", "hidden_act", "activation_function", "activation")


class MixerBlock(NamedTuple):
    """A token mixer, such as attention, with its tensors."""

    mixer: Mixer
    tensors: Tensors


class FeedForwardBlock(NamedTuple):
    """A feed-forward block, dense or with experts, and its tensors."""

    block: Mlp | Moe
    tensors: Tensors


class AttentionStyle(NamedTuple):
    """Tensor names and properties of a family's attention; the defaults are Llama's.

    `key_bias` defaults to `bias`; `qk_tensors` returns the tensors of the norms of queries and keys.
    """

    prefix: str = "self_attn."
    names: tuple[str, str] | tuple[str, str, str, str] = ("q_proj", "k_proj", "v_proj", "o_proj")
    bias: FlagSource = False
    key_bias: FlagSource | None = None
    out_bias: FlagSource = False
    qk_norm: Literal["none", "head", "all"] = "none"
    qk_norm_when: FlagSource = True
    qk_tensors: Callable[[Attention], Tensors] = qk_norm_tensors
    pattern: AttentionPattern = full_attention
    dropout: DropoutSource = ("attention_dropout", 0.0)
    sinks: bool = False
    fp32_softmax: bool = True
    sdpa: bool = True
    heads_first: bool = False
    fp32_rotation: bool = False
    joined: bool = False
    fp32_scores: bool = False
    returns_scores: bool = False
    boolean_mask: bool = False
    late_outputs: int = 0
    gathered_rows: tuple[int, ...] = ()
    softcap: bool = False
    position_bias: bool = False


class MlpStyle(NamedTuple):
    """Tensor names and properties of a family's feed-forward block; the defaults are Llama's.

    Two names mean a plain block, or a gated one with `fused` gate and up projections. `ratio` is the default width as a
    multiple of the hidden width.
    """

    prefix: str = "mlp."
    names: tuple[str, ...] = ("gate_proj", "up_proj", "down_proj")
    fused: bool = False
    bias: FlagSource = False
    activation: str = "silu"
    activation_fields: tuple[str, ...] = ACTIVATION_FIELDS
    dropout: DropoutSource = 0.0
    width: tuple[str, ...] = ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size")
    ratio: int | None = None


PLAIN_MLP: Final = MlpStyle(
    names=("fc1", "fc2"),
    bias=True,
    activation="gelu",
    activation_fields=("hidden_act",),
    width=("intermediate_size",),
)
"""Style of the feed-forward block in most encoders and vision towers."""


def read_flag(fields: ConfigFields, flag: FlagSource) -> bool:
    """Return the value of `flag`: fixed, or read from the configuration."""
    return flag if isinstance(flag, bool) else fields.flag(flag[0], default=flag[1])


def read_dropout(fields: ConfigFields, dropout: DropoutSource) -> float:
    """Return the dropout probability `dropout`: fixed, or read from the configuration."""
    return dropout if isinstance(dropout, float) else fields.dropout(dropout[0], default=dropout[1])


def attention_blocks(fields: ConfigFields, sizes: StackSizes, style: AttentionStyle) -> tuple[MixerBlock, ...]:
    """Return one attention block per layer."""
    layers = style.pattern(fields, sizes.layers)
    made = {layer: _attention_block(fields, sizes, style, layer) for layer in set(layers)}
    return tuple(made[layer] for layer in layers)


def transform_blocks(blocks: Sequence[MixerBlock], alter: Callable[[MixerBlock], MixerBlock]) -> tuple[MixerBlock, ...]:
    """Return the blocks changed by `alter`, which runs once for each distinct block."""
    made = {block: alter(block) for block in set(blocks)}
    return tuple(made[block] for block in blocks)


def _attention_block(
    fields: ConfigFields, sizes: StackSizes, style: AttentionStyle, layer: LayerAttention
) -> MixerBlock:
    mixer = _attention_mixer(fields, sizes, style, layer)
    return MixerBlock(mixer, (*_projection_tensors(fields, mixer, sizes.hidden, style), *style.qk_tensors(mixer)))


def _attention_mixer(
    fields: ConfigFields, sizes: StackSizes, style: AttentionStyle, layer: LayerAttention
) -> Attention:
    return Attention(
        heads=sizes.heads,
        kv_heads=sizes.kv_heads,
        head_dim=sizes.head_dim,
        window=layer.window,
        qk_norm=style.qk_norm if read_flag(fields, style.qk_norm_when) else "none",
        fused_qkv=len(style.names) == 2,
        rotary=layer.rotary,
        dropout=read_dropout(fields, style.dropout),
        sinks=style.sinks,
        fp32_softmax=style.fp32_softmax,
        sdpa=style.sdpa,
        heads_first=style.heads_first,
        fp32_rotation=style.fp32_rotation,
        joined=style.joined,
        fp32_scores=style.fp32_scores,
        returns_scores=style.returns_scores,
        boolean_mask=style.boolean_mask,
        late_outputs=style.late_outputs,
        gathered_rows=style.gathered_rows,
        softcap=style.softcap,
        position_bias=style.position_bias,
    )


def _projection_tensors(fields: ConfigFields, mixer: Attention, hidden: int, style: AttentionStyle) -> Tensors:
    bias, out_bias = read_flag(fields, style.bias), read_flag(fields, style.out_bias)
    if len(style.names) == 2:
        return fused_attention_tensors(
            mixer, hidden, prefix=style.prefix, names=style.names, bias=bias, out_bias=out_bias
        )
    key_bias = None if style.key_bias is None else read_flag(fields, style.key_bias)
    return attention_tensors(
        mixer, hidden, prefix=style.prefix, names=style.names, bias=bias, key_bias=key_bias, out_bias=out_bias
    )


def _mlp_width(fields: ConfigFields, sizes: StackSizes, style: MlpStyle) -> int:
    default = None if style.ratio is None else style.ratio * sizes.hidden
    return default if default and not fields.has(*style.width) else fields.integer(*style.width)


def dense_mlp(fields: ConfigFields, sizes: StackSizes, style: MlpStyle, width: int | None = None) -> Mlp:
    """Return a layer's dense feed-forward block without tensors; `width` overrides the configuration's width."""
    return Mlp(
        intermediate=_mlp_width(fields, sizes, style) if width is None else width,
        gated=style.fused or len(style.names) == 3,
        activation=fields.choice(*style.activation_fields, among=ACTIVATIONS, default=style.activation),
        fused_gate_up=style.fused,
        dropout=read_dropout(fields, style.dropout),
    )


def mlp_block(fields: ConfigFields, sizes: StackSizes, style: MlpStyle) -> FeedForwardBlock:
    """Return a layer's dense feed-forward block with its tensors."""
    mlp = dense_mlp(fields, sizes, style)
    bias = read_flag(fields, style.bias)
    return FeedForwardBlock(mlp, mlp_tensors(mlp, sizes.hidden, prefix=style.prefix, names=style.names, bias=bias))


ExtraTensors = Callable[[ConfigFields, StackSizes], Tensors]
"""Function that returns a model family's extra tensors, which its style does not declare."""


def no_tensors(_: ConfigFields, __: StackSizes) -> Tensors:
    """Return no tensors, for families without extra tensors."""
    return ()


class LayerStyle(NamedTuple):
    """Tensor names and properties of a whole encoder layer: attention, feed-forward block and norms.

    A layer with cross-attention has `cross`, of which only the names and biases are used.
    """

    attention: AttentionStyle
    mlp: MlpStyle
    norms: tuple[str, ...]
    norm: Norm = LAYER
    post_norms: bool = False
    dropout: DropoutSource = 0.0
    cross: AttentionStyle | None = None
    scaled: bool = False

    def build_layer(
        self,
        fields: ConfigFields,
        sizes: StackSizes,
        *,
        rotary: bool = False,
        window: int | None = None,
        mlp: Mlp | None = None,
        width: int | None = None,
        extra: Tensors = (),
    ) -> Layer:
        """Return a layer of this style, with the additional tensors `extra`.

        `mlp` overrides the style's feed-forward block, `width` only its width.
        """
        mixer = _attention_mixer(fields, sizes, self.attention, LayerAttention(window, rotary))
        crossing = mixer.evolve(rotary=False)
        block = dense_mlp(fields, sizes, self.mlp, width) if mlp is None else mlp
        bias = read_flag(fields, self.mlp.bias)
        return Layer(
            mixer=mixer,
            cross_attention=crossing if self.cross else None,
            feed_forward=block,
            norm=self.norm,
            norm_count=len(self.norms),
            post_norms=self.post_norms,
            hidden_dropout=read_dropout(fields, self.dropout),
            scaled=self.scaled,
            tensors=(
                *_projection_tensors(fields, mixer, sizes.hidden, self.attention),
                *self.attention.qk_tensors(mixer),
                *(_projection_tensors(fields, crossing, sizes.hidden, self.cross) if self.cross else ()),
                *(found for name in self.norms for found in norm_tensors(name, sizes.hidden, self.norm)),
                *mlp_tensors(block, sizes.hidden, prefix=self.mlp.prefix, names=self.mlp.names, bias=bias),
                *extra,
            ),
        )
