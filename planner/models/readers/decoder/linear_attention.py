"""Readers of hybrid decoders: attention with delta nets, linear attention, gated recurrences or short convolutions.

**Source**: the modelling code of transformers 5.23; tensor names are those of the published checkpoints.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from planner.models.architecture import Architecture, Attention, Mlp, StateMixer
from planner.models.readers.attention_patterns import LayerAttention, attention_layers
from planner.models.readers.blocks import (
    ACTIVATION_FIELDS,
    AttentionStyle,
    FeedForwardBlock,
    MixerBlock,
    MlpStyle,
    StackSizes,
    attention_blocks,
)
from planner.models.readers.config_fields import MAX_LAYERS, ConfigFields
from planner.models.readers.decoder.assembly import (
    DecoderFamily,
    DecoderFrame,
    ExpertStyle,
    experts_after_dense_layers,
    experts_in_stepped_layers,
    shared_width_from_count,
)
from planner.models.readers.decoder.moe import MIXTRAL_EXPERTS, QWEN_SHARED, latent_block
from planner.models.readers.decoder.state_mixers import DeltaNetSizes, delta_block
from planner.models.readers.registry import Reader
from planner.models.readers.tensors import (
    ACTIVATIONS,
    FP32_RMS,
    RMS,
    conv,
    linear,
    mlp_tensors,
    norm_tensors,
    projection_tensors,
    qk_norm_tensors,
    tensor,
)

_FULL_ATTENTION_INTERVAL: Final = 4
_KIMI_LATENT: Final = {
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
}
_GRIFFIN: Final = ("recurrent", "recurrent", "attention")
_GRIFFIN_WINDOW: Final = 2048


def _qwen_mixers(fields: ConfigFields, sizes: StackSizes, _: AttentionStyle, *, fused: bool) -> Sequence[MixerBlock]:
    attention = _gated_attention_block(fields, sizes)
    delta = DeltaNetSizes(
        key_heads=fields.integer("linear_num_key_heads", default=16, high=MAX_LAYERS),
        key_dim=fields.integer("linear_key_head_dim", default=128),
        value_heads=fields.integer("linear_num_value_heads", default=32, high=MAX_LAYERS),
        value_dim=fields.integer("linear_value_head_dim", default=128),
        kernel=fields.integer("linear_conv_kernel_dim", default=4),
    )
    mixer = delta_block(sizes.hidden, delta, fused=fused)

    def attends_by_default(index: int) -> bool:
        return (index + 1) % fields.integer("full_attention_interval", default=_FULL_ATTENTION_INTERVAL) == 0

    attended = attention_layers(fields, ("layer_types",), sizes.layers, attends_by_default)
    return [attention if attends else mixer for attends in attended]


def _gated_attention_block(fields: ConfigFields, sizes: StackSizes) -> MixerBlock:
    """Return Qwen's attention, whose query projection also produces an output gate."""
    mixer = Attention(
        heads=sizes.heads,
        kv_heads=sizes.kv_heads,
        head_dim=sizes.head_dim,
        qk_norm="head",
        dropout=fields.dropout("attention_dropout"),
    )
    bias = fields.flag("attention_bias", default=False)
    widths = {"q_proj": 2 * mixer.q_dim, "k_proj": mixer.kv_dim, "v_proj": mixer.kv_dim}
    projection_tensors = (
        found for name, width in widths.items() for found in linear(f"self_attn.{name}", width, sizes.hidden, bias=bias)
    )
    out = linear("self_attn.o_proj", sizes.hidden, mixer.q_dim, bias=bias)
    return MixerBlock(mixer, (*projection_tensors, *out, *qk_norm_tensors(mixer, FP32_RMS)))


def _kimi_mixers(fields: ConfigFields, sizes: StackSizes, _: AttentionStyle) -> Sequence[MixerBlock]:
    """Return the token mixer of every layer: Kimi delta attention, and latent attention in one layer of four.

    **Source**: Kimi Linear (arXiv:2510.26692) §4 and `modeling_kimi_linear.py` of transformers 5.23.
    """
    attention = latent_block(fields.with_defaults(_KIMI_LATENT), sizes, bias=False)
    linear_fields = fields.nested("linear_attn_config") or fields
    mixer = _kimi_delta_block(linear_fields, sizes.hidden)

    def attends_by_default(index: int) -> bool:
        listed = linear_fields.integers("full_attn_layers", low=1)
        # The checkpoint counts its layers from 1.
        return index > 0 and index % 4 == 0 if listed is None else index + 1 in listed

    attended = attention_layers(fields, ("layer_types",), sizes.layers, attends_by_default)
    return [attention if attends else mixer for attends in attended]


def _kimi_delta_block(fields: ConfigFields, hidden: int) -> MixerBlock:
    """Return Kimi delta attention: a delta net with low-rank projections for its gates."""
    heads = fields.integer("linear_num_heads", "num_heads", default=32, high=MAX_LAYERS)
    width = fields.integer("linear_head_dim", "head_dim", default=128)
    kernel = fields.integer("linear_conv_kernel_dim", "short_conv_kernel_size", default=4)
    inner = heads * width
    mixer = StateMixer(
        name="gated-delta-net",
        conv_state_elements=3 * inner * kernel,
        conv_kernel=kernel,
        recurrent_state_elements=inner * width,
        inner_dim=inner,
    )
    prefix = "self_attn."
    return MixerBlock(
        mixer,
        (
            *projection_tensors(prefix, ("q_proj", "k_proj", "v_proj"), inner, hidden),
            *conv(f"{prefix}conv1d", 3 * inner, 3 * inner, kernel, groups=3 * inner, bias=False),
            *tensor(f"{prefix}forget_gate.dt_bias", inner),
            *tensor(f"{prefix}forget_gate.A_log", 1, 1, heads, 1),
            *linear(f"{prefix}forget_gate.f_a_proj", width, hidden),
            *linear(f"{prefix}forget_gate.f_b_proj", inner, width),
            *linear(f"{prefix}b_proj", heads, hidden),
            *linear(f"{prefix}g_a_proj", width, hidden),
            *linear(f"{prefix}g_b_proj", inner, width),
            *norm_tensors(f"{prefix}o_norm", width, RMS),
            *linear(f"{prefix}o_proj", hidden, inner),
        ),
    )


def _minimax_mixers(fields: ConfigFields, sizes: StackSizes, style: AttentionStyle) -> Sequence[MixerBlock]:
    """Return the token mixer of every layer: linear ("lightning") attention, and softmax attention in a few layers.

    **Source**: MiniMax-01 (arXiv:2501.08313) §2.2.
    """
    softmax = attention_blocks(fields, sizes, style)[0]
    lightning = _lightning_block(sizes)
    return [softmax if plain else lightning for plain in _softmax_layers(fields, sizes.layers)]


def _lightning_block(sizes: StackSizes) -> MixerBlock:
    """Return lightning attention, whose state is one head_dim × head_dim matrix per head."""
    width = sizes.heads * sizes.head_dim
    mixer = StateMixer(
        name="linear-attention",
        conv_state_elements=0,
        recurrent_state_elements=width * sizes.head_dim,
        inner_dim=width,
    )
    return MixerBlock(
        mixer,
        (
            *norm_tensors("self_attn.norm", width, RMS),
            *linear("self_attn.qkv_proj", 3 * width, sizes.hidden),
            *linear("self_attn.out_proj", sizes.hidden, width),
            *linear("self_attn.output_gate", width, sizes.hidden),
        ),
    )


def _softmax_layers(fields: ConfigFields, layers: int) -> tuple[bool, ...]:
    kinds = fields.texts("layer_types")
    if kinds is None:
        return tuple(index % 2 == 0 for index in range(layers))
    if len(kinds) != layers or not set(kinds) <= {"full_attention", "linear_attention"}:
        fields.fail("layer_types", f"must say full_attention or linear_attention for each of the {layers} layers")
    return tuple(kind == "full_attention" for kind in kinds)


def _griffin_mixers(fields: ConfigFields, sizes: StackSizes, style: AttentionStyle) -> Sequence[MixerBlock]:
    """Return the token mixer of every layer: repeatedly two gated linear recurrences and one local attention."""
    pattern = fields.texts("block_types") or _GRIFFIN
    if not set(pattern) <= set(_GRIFFIN):
        fields.fail("block_types", "must name recurrent or attention")
    attention, recurrence = attention_blocks(fields, sizes, style)[0], _recurrence_block(fields, sizes)
    kinds = (pattern[index % len(pattern)] for index in range(sizes.layers))
    return [attention if kind == "attention" else recurrence for kind in kinds]


def _griffin_mlp_blocks(fields: ConfigFields, sizes: StackSizes, _: MlpStyle) -> Sequence[FeedForwardBlock]:
    """Return Griffin's MLP of every layer; the configuration states the total width of gate and up projection."""
    mlp = Mlp(
        intermediate=fields.integer("intermediate_size", low=2) // 2,
        gated=True,
        activation=fields.choice(*ACTIVATION_FIELDS, among=ACTIVATIONS, default="gelu_pytorch_tanh"),
    )
    return (FeedForwardBlock(mlp, mlp_tensors(mlp, sizes.hidden, prefix="mlp_block.", bias=True)),) * sizes.layers


def _recurrence_block(fields: ConfigFields, sizes: StackSizes) -> MixerBlock:
    """Return Griffin's recurrent block, whose gates are block-diagonal with one block per head.

    **Source**: Griffin (arXiv:2402.19427) §2.4; the state of the convolution holds one input less than its kernel
    (`modeling_recurrent_gemma.py` of transformers 5.23).
    """
    width = fields.integer("lru_width", default=sizes.hidden)
    kernel = fields.integer("conv1d_width", default=4)
    mixer = StateMixer(
        name="rg-lru",
        conv_state_elements=sizes.hidden * (kernel - 1),
        recurrent_state_elements=width,
        inner_dim=width,
    )
    block = width // sizes.heads
    prefix = "temporal_block."
    gates = (
        found
        for name in ("input_gate", "recurrent_gate")
        for found in (
            *tensor(f"{prefix}rg_lru.{name}_weight", sizes.heads, block, block, role="linear"),
            *tensor(f"{prefix}rg_lru.{name}_bias", sizes.heads, block, role="bias"),
        )
    )
    return MixerBlock(
        mixer,
        (
            *linear(f"{prefix}linear_y", width, sizes.hidden, bias=True),
            *linear(f"{prefix}linear_x", width, sizes.hidden, bias=True),
            *linear(f"{prefix}linear_out", sizes.hidden, width, bias=True),
            *conv(f"{prefix}conv_1d", width, width, kernel, groups=width),
            *tensor(f"{prefix}rg_lru.recurrent_param", width),
            *gates,
        ),
    )


def _lfm2_mixers(fields: ConfigFields, sizes: StackSizes, style: AttentionStyle) -> Sequence[MixerBlock]:
    attention, convolution = attention_blocks(fields, sizes, style)[0], _short_conv_block(fields, sizes.hidden)

    def attends_by_default(index: int) -> bool:
        listed = fields.integers("full_attn_idxs")
        return listed is None or index in listed

    attended = attention_layers(fields, ("layer_types",), sizes.layers, attends_by_default)
    return [attention if attends else convolution for attends in attended]


def _lfm2_mlp_blocks(fields: ConfigFields, sizes: StackSizes, _: MlpStyle) -> Sequence[FeedForwardBlock]:
    """Return LFM2's MLP of every layer, by default with two thirds of the stated width, rounded up to a multiple."""
    width = fields.integer("block_ff_dim", "intermediate_size")
    if fields.flag("block_auto_adjust_ff_dim", default=True):
        scaled = int(fields.number("block_ffn_dim_multiplier", default=1.0) * int(2 * width / 3))
        multiple = fields.integer("block_multiple_of", default=256)
        width = multiple * -(-scaled // multiple)
    mlp = Mlp(intermediate=max(1, width), gated=True)
    tensors = mlp_tensors(mlp, sizes.hidden, prefix="feed_forward.", names=("w1", "w3", "w2"))
    return (FeedForwardBlock(mlp, tensors),) * sizes.layers


def _short_conv_block(fields: ConfigFields, hidden: int) -> MixerBlock:
    """Return LFM2's gated convolution over the last few tokens.

    **Source**: `modeling_lfm2.py` of transformers 5.23.
    """
    kernel = fields.integer("conv_L_cache", default=3)
    bias = fields.flag("conv_bias", default=False)
    mixer = StateMixer(
        name="short-conv",
        conv_state_elements=hidden * kernel,
        conv_kernel=kernel,
        recurrent_state_elements=0,
        inner_dim=hidden,
    )
    return MixerBlock(
        mixer,
        (
            *linear("conv.in_proj", 3 * hidden, hidden, bias=bias),
            *conv("conv.conv", hidden, hidden, kernel, groups=hidden, bias=bias),
            *linear("conv.out_proj", hidden, hidden, bias=bias),
        ),
    )


_LFM2: Final = DecoderFamily(
    frame=DecoderFrame(norms=("operator_norm", "ffn_norm"), final_norm="model.embedding_norm", tied=True),
    attention=AttentionStyle(
        names=("q_proj", "k_proj", "v_proj", "out_proj"),
        qk_norm="head",
        qk_tensors=partial(qk_norm_tensors, names=("q_layernorm", "k_layernorm")),
        dropout=0.0,
    ),
    kv_heads=8,
    mixers=_lfm2_mixers,
    feed_forwards=_lfm2_mlp_blocks,
)


def read_lfm2(fields: ConfigFields) -> Architecture:
    """Read LFM2: gated short convolutions, with attention in some layers."""
    tied = fields.flag("tie_embedding", "tie_word_embeddings", default=True)
    return _LFM2.read(fields.with_defaults({"tie_word_embeddings": tied}))


_QWEN3_5: Final = DecoderFamily(
    frame=DecoderFrame(norm=FP32_RMS), kv_heads=4, head_dim=256, mixers=partial(_qwen_mixers, fused=False)
)
READERS: Final[Mapping[str, Reader]] = {
    "qwen3_next": _QWEN3_5._replace(
        kv_heads=2,
        mixers=partial(_qwen_mixers, fused=True),
        feed_forwards=QWEN_SHARED._replace(sparse=experts_in_stepped_layers).blocks,
    ).read,
    "qwen3_5_text": _QWEN3_5.read,
    "qwen3_5_moe_text": _QWEN3_5._replace(kv_heads=2, feed_forwards=QWEN_SHARED.blocks).read,
    "kimi_linear": DecoderFamily(
        mixers=_kimi_mixers,
        feed_forwards=ExpertStyle(
            top_k=("num_experts_per_token", "num_experts_per_tok"),
            shared=shared_width_from_count("num_shared_experts", 1),
            sparse=experts_after_dense_layers(1),
        ).blocks,
    ).read,
    "minimax": DecoderFamily(kv_heads=8, mixers=_minimax_mixers, feed_forwards=MIXTRAL_EXPERTS.blocks).read,
    "recurrent_gemma": DecoderFamily(
        frame=DecoderFrame(
            norm=FP32_RMS, norms=("temporal_pre_norm", "channel_pre_norm"), final_norm="model.final_norm", tied=True
        ),
        attention=AttentionStyle(
            prefix="temporal_block.",
            bias=("attention_bias", False),
            out_bias=True,
            pattern=lambda fields, layers: (
                (LayerAttention(fields.integer("attention_window_size", default=_GRIFFIN_WINDOW)),) * layers
            ),
        ),
        mixers=_griffin_mixers,
        feed_forwards=_griffin_mlp_blocks,
    ).read,
    "lfm2": read_lfm2,
}
