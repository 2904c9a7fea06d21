"""Readers of state space decoders: Mamba, RWKV, and hybrids of Mamba and attention such as Jamba and Granite 4.

**Source**: the modelling code of transformers 5.23; tensor names are those of the published checkpoints.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from planner.models.architecture import Architecture, Attention, Layer, Mlp, Moe, StateMixer
from planner.models.readers.attention_patterns import attention_layers, unrotated_attention
from planner.models.readers.blocks import (
    AttentionStyle,
    FeedForwardBlock,
    MixerBlock,
    MlpStyle,
    StackSizes,
    attention_blocks,
    mlp_block,
    read_sizes,
)
from planner.models.readers.config_fields import MAX_LAYERS, ConfigFields
from planner.models.readers.decoder.assembly import (
    DecoderFamily,
    DecoderFrame,
    ExpertStyle,
    decoder_network,
    dense_blocks,
    shared_width_from_field,
)
from planner.models.readers.decoder.llama_like import BIASED, MLP_BIAS
from planner.models.readers.decoder.moe import GRANITE_EXPERTS
from planner.models.readers.decoder.state_mixers import Mamba2Sizes, mamba2_block, mamba_block
from planner.models.readers.registry import Reader
from planner.models.readers.tensors import (
    ACTIVATIONS,
    FP32_RMS,
    LAYER,
    RMS,
    Tensors,
    attention_tensors,
    embedding,
    expert_tensors,
    group_layers,
    linear,
    mlp_tensors,
    norm_tensors,
    projection_tensors,
    repeat_layer,
    router_tensors,
    tensor,
)

_KERNEL: Final = 4
_EXPAND: Final = 2
_STATE: Final = 256
_HEADS: Final = 128

_MAMBA_FRAME: Final = DecoderFrame(
    norms=("norm",), embedding="backbone.embeddings", final_norm="backbone.norm_f", tied=True
)
_RWKV_FRAME: Final = DecoderFrame(norm=LAYER, final_norm="ln_out", head="head")
_NEMOTRON_FRAME: Final = DecoderFrame(norm=FP32_RMS, norms=("norm",), embedding="embeddings", final_norm="norm_f")
_HYBRID_FRAME: Final = DecoderFrame(norms=("input_layernorm", "pre_ff_layernorm"), final_norm="model.final_layernorm")
_HYBRID_MLP: Final = MlpStyle(prefix="feed_forward.", bias=MLP_BIAS)


def read_mamba(fields: ConfigFields) -> Architecture:
    """Read Mamba or Falcon Mamba; Falcon Mamba's additional norms have no weights."""
    sizes = _stack_sizes(fields, "hidden_size", "d_model")
    block = mamba_block(
        sizes.hidden,
        inner=fields.integer("intermediate_size", default=fields.integer("expand", default=_EXPAND) * sizes.hidden),
        state=fields.integer("state_size"),
        kernel=fields.integer("conv_kernel", default=_KERNEL),
        rank=fields.automatic_integer("time_step_rank", default=math.ceil(sizes.hidden / 16)),
        bias=fields.flag("use_bias", default=False),
        conv_bias=fields.flag("use_conv_bias", default=True),
    )
    return decoder_network(
        fields, sizes, _MAMBA_FRAME, repeat_layer(_single_block_layer(block, sizes, _MAMBA_FRAME), sizes.layers)
    )


def read_mamba2(fields: ConfigFields) -> Architecture:
    """Read the architecture of Mamba-2."""
    sizes = _stack_sizes(fields, "hidden_size")
    scan = Mamba2Sizes(
        heads=fields.integer("num_heads", high=MAX_LAYERS),
        head_dim=fields.integer("head_dim"),
        groups=fields.integer("n_groups"),
        state=fields.integer("state_size"),
        kernel=fields.integer("conv_kernel", default=_KERNEL),
    )
    block = mamba2_block(
        sizes.hidden,
        scan,
        prefix="mixer.",
        bias=fields.flag("use_bias", default=False),
        conv_bias=fields.flag("use_conv_bias", default=True),
    )
    frame = _MAMBA_FRAME._replace(tied=False)
    return decoder_network(fields, sizes, frame, repeat_layer(_single_block_layer(block, sizes, frame), sizes.layers))


def read_rwkv(fields: ConfigFields) -> Architecture:
    """Read the architecture of RWKV-4, which has recurrent time mixing instead of attention.

    Its state is the last input of both blocks, and numerator, denominator and maximum in fp32
    (`modeling_rwkv.py` of transformers 5.23).
    """
    sizes = _stack_sizes(fields, "hidden_size")._replace(max_context=fields.optional_integer("context_length"))
    hidden = sizes.hidden
    width = fields.integer("attention_hidden_size", default=hidden)
    inner = fields.integer("intermediate_size", default=4 * hidden)
    layer = Layer(
        mixer=StateMixer(
            name="rwkv", conv_state_elements=2 * hidden, recurrent_state_elements=3 * width, inner_dim=width
        ),
        feed_forward=Mlp(intermediate=inner, gated=False, activation="relu2"),
        norm=LAYER,
        norm_count=2,
        tensors=_rwkv_tensors(hidden, width, inner),
    )
    before = (*embedding("embeddings", sizes.vocabulary, hidden), *norm_tensors("blocks.0.pre_ln", hidden, LAYER))
    return decoder_network(fields, sizes, _RWKV_FRAME, repeat_layer(layer, sizes.layers), before=before)


def _rwkv_tensors(hidden: int, width: int, inner: int) -> Tensors:
    mixed = {"attention": ("key", "value", "receptance"), "feed_forward": ("key", "receptance")}
    return (
        *norm_tensors("ln1", hidden, LAYER),
        *norm_tensors("ln2", hidden, LAYER),
        *tensor("attention.time_decay", width),
        *tensor("attention.time_first", width),
        *(
            found
            for block, names in mixed.items()
            for name in names
            for found in tensor(f"{block}.time_mix_{name}", 1, 1, hidden)
        ),
        *projection_tensors("attention.", mixed["attention"], width, hidden),
        *linear("attention.output", hidden, width),
        *linear("feed_forward.key", inner, hidden),
        *linear("feed_forward.receptance", hidden, hidden),
        *linear("feed_forward.value", hidden, inner),
    )


def _stack_sizes(fields: ConfigFields, *hidden: str) -> StackSizes:
    """Read the dimensions of a stack without attention, whose context is unbounded."""
    return StackSizes(
        hidden=fields.integer(*hidden),
        layers=fields.integer("num_hidden_layers", "n_layer", high=MAX_LAYERS),
        vocabulary=fields.integer("vocab_size"),
    )


def _single_block_layer(block: MixerBlock | FeedForwardBlock, sizes: StackSizes, frame: DecoderFrame) -> Layer:
    tensors = (*norm_tensors(frame.norms[0], sizes.hidden, frame.norm), *block.tensors)
    if isinstance(block, MixerBlock):
        return Layer(mixer=block.mixer, norm=frame.norm, norm_count=1, tensors=tensors)
    return Layer(feed_forward=block.block, norm=frame.norm, norm_count=1, tensors=tensors)


def _jamba_mixers(fields: ConfigFields, sizes: StackSizes, style: AttentionStyle) -> Sequence[MixerBlock]:
    """Return the token mixer of every layer: attention in one layer of eight, Mamba in the others."""
    attention = attention_blocks(fields, sizes, style)[0]
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
    return [attention if index % period == offset else mamba for index in range(sizes.layers)]


def _jamba_expert_layers(fields: ConfigFields, layers: int) -> tuple[bool, ...]:
    period = fields.integer("expert_layer_period", default=2)
    offset = fields.integer("expert_layer_offset", default=1, low=0)
    several = fields.integer("num_experts", "num_local_experts", default=1, high=MAX_LAYERS) > 1
    return tuple(several and index % period == offset for index in range(layers))


def _bamba_mixers(fields: ConfigFields, sizes: StackSizes, style: AttentionStyle) -> Sequence[MixerBlock]:
    """Return the token mixer of every layer: attention in the layers `attn_layer_indices`, Mamba-2 in the others."""

    def attends_by_default(index: int) -> bool:
        return index in (fields.integers("attn_layer_indices") or ())

    attended = attention_layers(fields, ("layers_block_type",), sizes.layers, attends_by_default)
    return _mamba2_or_attention_mixers(fields, sizes, style, attended)


def _granite_mixers(fields: ConfigFields, sizes: StackSizes, style: AttentionStyle) -> Sequence[MixerBlock]:
    """Return the token mixer of every layer: Mamba-2 or attention, with rotary embedding only if stated."""
    rotates = fields.text("position_embedding_type", default="nope") == "rope"
    names = ("layer_types", "layers_block_type")
    attended = attention_layers(fields, names, sizes.layers, lambda _: False)
    return _mamba2_or_attention_mixers(
        fields, sizes, style if rotates else style._replace(pattern=unrotated_attention), attended
    )


def _mamba2_or_attention_mixers(
    fields: ConfigFields, sizes: StackSizes, style: AttentionStyle, attended: Sequence[bool]
) -> Sequence[MixerBlock]:
    attention, mamba = attention_blocks(fields, sizes, style)[0], _mamba2_mixer(fields, sizes)
    return [attention if attends else mamba for attends in attended]


def _granite_feed_forwards(fields: ConfigFields, sizes: StackSizes, dense: MlpStyle) -> Sequence[FeedForwardBlock]:
    """Return Granite 4's feed-forward block of every layer: a shared expert and, in larger networks, routed experts."""
    if fields.integer("num_local_experts", default=0, low=0, high=MAX_LAYERS):
        return GRANITE_EXPERTS._replace(shared=shared_width_from_field("shared_intermediate_size")).blocks(
            fields, sizes, dense
        )
    return dense_blocks(fields, sizes, dense)


def read_falcon_h1(fields: ConfigFields) -> Architecture:
    """Read Falcon-H1, whose layers run attention and Mamba-2 in parallel on the same input."""
    sizes = read_sizes(fields)
    attention = attention_blocks(fields, sizes, BIASED)[0]
    out_bias = fields.flag("projectors_bias", default=False)
    normed = fields.flag("mamba_rms_norm", default=False)
    mamba = _mamba2_mixer(fields, sizes, inner="mamba_d_ssm", out_bias=out_bias, normed=normed)
    forward = mlp_block(fields, sizes, _HYBRID_MLP)
    norms = (found for name in _HYBRID_FRAME.norms for found in norm_tensors(name, sizes.hidden, RMS))
    layer = Layer(
        mixer=attention.mixer,
        second_mixer=mamba.mixer,
        feed_forward=forward.block,
        norm=RMS,
        norm_count=2,
        tensors=(*attention.tensors, *mamba.tensors, *forward.tensors, *norms),
    )
    return decoder_network(fields, sizes, _HYBRID_FRAME, repeat_layer(layer, sizes.layers))


def _mamba2_mixer(
    fields: ConfigFields,
    sizes: StackSizes,
    *,
    inner: str | None = None,
    out_bias: bool | None = None,
    normed: bool = True,
) -> MixerBlock:
    """Return the Mamba-2 mixer; `inner` names the field with the expanded width, by default twice the hidden width."""
    heads = fields.integer("mamba_n_heads", default=_HEADS, high=MAX_LAYERS)
    expanded = fields.integer("mamba_expand", default=_EXPAND) * sizes.hidden
    width = fields.integer(inner, default=expanded) if inner else expanded
    scan = Mamba2Sizes(
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


LayerKind = Literal["mamba", "attention", "mlp", "moe"]

_LETTERS: Final[Mapping[str, LayerKind]] = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
_NAMES: Final[Mapping[str, LayerKind]] = {
    "mamba": "mamba",
    "linear_attention": "mamba",
    "attention": "attention",
    "full_attention": "attention",
    "mlp": "mlp",
    "moe": "moe",
}
_NEMOTRON_MLP: Final = ("up_proj", "down_proj")


def read_nemotron_h(fields: ConfigFields) -> Architecture:
    """Read Nemotron-H or Nemotron 3, whose layers have one block each, listed by name or by letter."""
    kinds = _nemotron_layer_kinds(fields)
    # The number of layers may be missing: the list of their kinds determines it.
    sizes = read_sizes(fields.with_defaults({"num_hidden_layers": len(kinds)}))
    groups = group_layers(
        kinds, lambda kind: _single_block_layer(_nemotron_block(fields, sizes, kind), sizes, _NEMOTRON_FRAME)
    )
    # Its head is never tied, even if the file states it: transformers' `_tied_weights_keys` is empty.
    fields = fields.with_changes({"tie_word_embeddings": False})
    return decoder_network(fields, sizes, _NEMOTRON_FRAME, groups)


def _nemotron_layer_kinds(fields: ConfigFields) -> tuple[LayerKind, ...]:
    if fields.has("layers_block_type", "layer_types"):
        field, known, stated = "layers_block_type", _NAMES, fields.texts("layers_block_type", "layer_types") or ()
    else:
        field, known, stated = "hybrid_override_pattern", _LETTERS, tuple(fields.text("hybrid_override_pattern"))
    if not 0 < len(stated) <= MAX_LAYERS or not set(stated) <= set(known):
        fields.fail(field, f"must name the kind of each layer, one of {', '.join(known)}")
    return tuple(known[name] for name in stated)


def _nemotron_block(fields: ConfigFields, sizes: StackSizes, kind: LayerKind) -> MixerBlock | FeedForwardBlock:
    if kind == "mlp":
        mlp = Mlp(
            intermediate=fields.integer("intermediate_size"),
            gated=False,
            activation=fields.choice("mlp_hidden_act", among=ACTIVATIONS, default="relu2"),
        )
        bias = fields.flag("mlp_bias", default=False)
        return FeedForwardBlock(mlp, mlp_tensors(mlp, sizes.hidden, prefix="mixer.", names=_NEMOTRON_MLP, bias=bias))
    if kind == "moe":
        return _nemotron_expert_block(fields, sizes)
    if kind == "mamba":
        return mamba2_block(
            sizes.hidden,
            Mamba2Sizes(
                heads=fields.integer("mamba_num_heads", high=MAX_LAYERS),
                head_dim=fields.integer("mamba_head_dim"),
                groups=fields.integer("n_groups", "mamba_n_groups"),
                state=fields.integer("ssm_state_size"),
                kernel=fields.integer("conv_kernel", "mamba_d_conv", default=_KERNEL),
            ),
            prefix="mixer.",
            bias=fields.flag("use_bias", default=False),
            conv_bias=fields.flag("use_conv_bias", "mamba_conv_bias", default=True),
        )
    attention = Attention(
        heads=sizes.heads,
        kv_heads=sizes.kv_heads,
        head_dim=sizes.head_dim,
        rotary=False,
        dropout=fields.dropout("attention_dropout"),
    )
    return MixerBlock(attention, attention_tensors(attention, sizes.hidden, prefix="mixer."))


def _nemotron_expert_block(fields: ConfigFields, sizes: StackSizes) -> FeedForwardBlock:
    """Return Nemotron's mixture of experts, which may work in a latent space narrower than the layer."""
    experts = fields.integer("n_routed_experts", "num_local_experts", high=MAX_LAYERS)
    shared = fields.integer("moe_shared_expert_intermediate_size")
    moe = Moe(
        experts=experts,
        top_k=fields.integer("num_experts_per_tok", high=experts),
        intermediate=fields.integer("moe_intermediate_size"),
        gated=False,
        activation=fields.choice("mlp_hidden_act", among=ACTIVATIONS, default="relu2"),
        shared_intermediate=shared,
    )
    bias = fields.flag("mlp_bias", default=False)
    latent = fields.optional_integer("moe_latent_size")
    shared_mlp = Mlp(intermediate=shared, gated=False)
    tensors = (
        *router_tensors("mixer.gate", experts, sizes.hidden),
        *expert_tensors(moe, latent or sizes.hidden, prefix="mixer.experts.{expert}.", names=_NEMOTRON_MLP),
        *(linear("mixer.fc1_latent_proj", latent, sizes.hidden, bias=bias) if latent else ()),
        *(linear("mixer.fc2_latent_proj", sizes.hidden, latent, bias=bias) if latent else ()),
        *mlp_tensors(shared_mlp, sizes.hidden, prefix="mixer.shared_experts.", names=_NEMOTRON_MLP, bias=bias),
    )
    return FeedForwardBlock(moe, tensors)


READERS: Final[Mapping[str, Reader]] = {
    "falcon_mamba": read_mamba,
    "mamba": read_mamba,
    "mamba2": read_mamba2,
    "rwkv": read_rwkv,
    "jamba": DecoderFamily(
        frame=_HYBRID_FRAME,
        attention=AttentionStyle(pattern=unrotated_attention),
        mlp=_HYBRID_MLP,
        mixers=_jamba_mixers,
        feed_forwards=ExpertStyle(
            width=("intermediate_size",),
            router="feed_forward.router",
            prefix="feed_forward.experts.{expert}.",
            sparse=_jamba_expert_layers,
        ).blocks,
    ).read,
    "bamba": DecoderFamily(frame=_HYBRID_FRAME, attention=BIASED, mlp=_HYBRID_MLP, mixers=_bamba_mixers).read,
    "granitemoehybrid": DecoderFamily(
        attention=BIASED,
        mlp=MlpStyle(
            prefix="shared_mlp.",
            names=("input_linear", "output_linear"),
            fused=True,
            width=("shared_intermediate_size",),
        ),
        mixers=_granite_mixers,
        feed_forwards=_granite_feed_forwards,
    ).read,
    "falcon_h1": read_falcon_h1,
    "nemotron_h": read_nemotron_h,
}
