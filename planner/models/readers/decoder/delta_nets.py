"""Decoders that mix delta nets with attention: Qwen3-Next, Qwen3.5 and Kimi Linear."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from planner.models.architecture import Architecture, Attention, LatentAttention, StateMixer
from planner.models.readers.blocks import MixerBlock, MlpStyle, mlp_block
from planner.models.readers.decoder.experts import (
    QWEN_EXPERTS,
    ExpertStyle,
    after_dense_layers,
    counted_shared,
    every_layer,
    forward_blocks,
    stated_shared,
)
from planner.models.readers.decoder.family import Frame, assemble
from planner.models.readers.decoder.hybrids import attention_layers
from planner.models.readers.decoder.llama_like import FP32_RMS
from planner.models.readers.decoder.state_mixers import Delta, delta_block
from planner.models.readers.fields import MAX_LAYERS, Fields
from planner.models.readers.parts import RMS, latent_tensors, linear, norm_tensors, qk_norm_tensors
from planner.models.readers.registry import Reader
from planner.models.readers.sizes import Sizes, read_sizes
from planner.models.readers.towers import conv, tensor

_FULL_ATTENTION_INTERVAL: Final = 4
_FRAME: Final = Frame(norm=FP32_RMS)
_SHARED: Final = ExpertStyle(
    shared=stated_shared("shared_expert_intermediate_size"),
    shared_prefix="mlp.shared_expert.",
    shared_gate="mlp.shared_expert_gate",
)


def read_qwen3_next(fields: Fields) -> Architecture:
    """Read Qwen3-Next, whose layers all hold experts unless the configuration says otherwise."""
    sizes = read_sizes(fields, kv_heads=2, head_dim=256)
    style = replace(_SHARED, sparse=QWEN_EXPERTS.sparse)
    return assemble(
        fields, sizes, _FRAME, _qwen_mixers(fields, sizes, fused=True), forward_blocks(fields, sizes, style, MlpStyle())
    )


def read_qwen3_5(fields: Fields) -> Architecture:
    """Read the text part of a dense Qwen3.5."""
    sizes = read_sizes(fields, kv_heads=4, head_dim=256)
    forward = mlp_block(fields, sizes, MlpStyle())
    return assemble(fields, sizes, _FRAME, _qwen_mixers(fields, sizes, fused=False), (forward,) * sizes.layers)


def read_qwen3_5_moe(fields: Fields) -> Architecture:
    """Read the text part of a Qwen3.5 with experts."""
    sizes = read_sizes(fields, kv_heads=2, head_dim=256)
    forwards = forward_blocks(fields, sizes, replace(_SHARED, sparse=every_layer), MlpStyle())
    return assemble(fields, sizes, _FRAME, _qwen_mixers(fields, sizes, fused=False), forwards)


def _qwen_mixers(fields: Fields, sizes: Sizes, *, fused: bool) -> tuple[MixerBlock, ...]:
    attention = _gated_attention(fields, sizes)
    delta = Delta(
        key_heads=fields.integer("linear_num_key_heads", default=16, high=MAX_LAYERS),
        key_dim=fields.integer("linear_key_head_dim", default=128),
        value_heads=fields.integer("linear_num_value_heads", default=32, high=MAX_LAYERS),
        value_dim=fields.integer("linear_value_head_dim", default=128),
        kernel=fields.integer("linear_conv_kernel_dim", default=4),
    )
    mixer = delta_block(sizes.hidden, delta, fused=fused)
    attended = attention_layers(fields, ("layer_types",), sizes.layers)
    if attended is None:
        interval = fields.integer("full_attention_interval", default=_FULL_ATTENTION_INTERVAL)
        attended = tuple((place + 1) % interval == 0 for place in range(sizes.layers))
    return tuple(attention if attends else mixer for attends in attended)


def _gated_attention(fields: Fields, sizes: Sizes) -> MixerBlock:
    """Return attention whose query projection also makes a gate for the output."""
    mixer = Attention(
        heads=sizes.heads,
        kv_heads=sizes.kv_heads,
        head_dim=sizes.head_dim,
        qk_norm="head",
        dropout=fields.dropout("attention_dropout"),
    )
    bias = fields.flag("attention_bias", default=False)
    widths = {"q_proj": 2 * mixer.q_dim, "k_proj": mixer.kv_dim, "v_proj": mixer.kv_dim}
    projections = (
        found for name, width in widths.items() for found in linear(f"self_attn.{name}", width, sizes.hidden, bias=bias)
    )
    out = linear("self_attn.o_proj", sizes.hidden, mixer.q_dim, bias=bias)
    return MixerBlock(mixer, (*projections, *out, *qk_norm_tensors(mixer, FP32_RMS)))


def read_kimi_linear(fields: Fields) -> Architecture:
    """Read Kimi Linear: Kimi delta attention, with latent attention in one layer of four.

    **Source**: Kimi Linear (arXiv:2510.26692) §4 and `modeling_kimi_linear.py` of transformers 5.23.
    """
    sizes = read_sizes(fields)
    latent = LatentAttention(
        heads=sizes.heads,
        q_lora_rank=fields.optional_integer("q_lora_rank"),
        kv_lora_rank=fields.integer("kv_lora_rank", default=512),
        qk_nope_head_dim=fields.integer("qk_nope_head_dim", default=128),
        qk_rope_head_dim=fields.integer("qk_rope_head_dim", default=64),
        v_head_dim=fields.integer("v_head_dim", default=128),
    )
    attention = MixerBlock(latent, latent_tensors(latent, sizes.hidden))
    linear_fields = fields.nested("linear_attn_config") or fields
    mixer = _kimi_delta(linear_fields, sizes.hidden)
    attended = attention_layers(fields, ("layer_types",), sizes.layers)
    if attended is None:
        attended = _kimi_attended(linear_fields, sizes.layers)
    mixers = [attention if attends else mixer for attends in attended]
    experts = ExpertStyle(
        top_k=("num_experts_per_token", "num_experts_per_tok"),
        shared=counted_shared("num_shared_experts", 1),
        sparse=after_dense_layers(1),
    )
    return assemble(fields, sizes, Frame(), mixers, forward_blocks(fields, sizes, experts, MlpStyle()))


def _kimi_attended(fields: Fields, layers: int) -> tuple[bool, ...]:
    listed = fields.integers("full_attn_layers", low=1)
    if listed is None:
        return tuple(place > 0 and place % 4 == 0 for place in range(layers))
    # The checkpoint counts its layers from 1.
    return tuple(place + 1 in frozenset(listed) for place in range(layers))


def _kimi_delta(fields: Fields, hidden: int) -> MixerBlock:
    """Return Kimi delta attention: a delta net whose gates are projections of low rank."""
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
            *(found for name in ("q_proj", "k_proj", "v_proj") for found in linear(f"{prefix}{name}", inner, hidden)),
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


READERS: Final[Mapping[str, Reader]] = {
    "kimi_linear": read_kimi_linear,
    "qwen3_5_moe_text": read_qwen3_5_moe,
    "qwen3_5_text": read_qwen3_5,
    "qwen3_next": read_qwen3_next,
}
