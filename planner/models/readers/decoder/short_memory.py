"""Decoders that mix attention with mixers of short memory: RecurrentGemma and LFM2."""

from collections.abc import Mapping
from typing import Final

from planner.models.architecture import Architecture, Attention, Mlp, StateMixer
from planner.models.readers.blocks import (
    ACTIVATION_FIELDS,
    AttentionStyle,
    ForwardBlock,
    MixerBlock,
    attention_blocks,
)
from planner.models.readers.decoder.family import Frame, assemble
from planner.models.readers.decoder.hybrids import attention_layers
from planner.models.readers.decoder.llama_like import FP32_RMS
from planner.models.readers.fields import Fields
from planner.models.readers.parts import ACTIVATIONS, Tensors, linear, mlp_tensors, qk_norm_tensors
from planner.models.readers.places import Place
from planner.models.readers.registry import Reader
from planner.models.readers.sizes import Sizes, read_sizes
from planner.models.readers.towers import conv, tensor

_GRIFFIN: Final = ("recurrent", "recurrent", "attention")
_GRIFFIN_WINDOW: Final = 2048
_GRIFFIN_FRAME: Final = Frame(
    norm=FP32_RMS, norms=("temporal_pre_norm", "channel_pre_norm"), final_norm="model.final_norm", tied=True
)


def read_recurrent_gemma(fields: Fields) -> Architecture:
    """Read RecurrentGemma (Griffin): two layers of a gated linear recurrence, then one of local attention."""
    sizes = read_sizes(fields)
    pattern = fields.texts("block_types") or _GRIFFIN
    if not set(pattern) <= set(_GRIFFIN):
        fields.fail("block_types", "must name recurrent or attention")
    window = fields.integer("attention_window_size", default=_GRIFFIN_WINDOW)
    style = AttentionStyle(
        prefix="temporal_block.",
        bias=("attention_bias", False),
        out_bias=True,
        places=lambda _, layers: (Place(window),) * layers,
    )
    attention = attention_blocks(fields, sizes, style)[0]
    recurrence = _recurrence(fields, sizes)
    kinds = (pattern[place % len(pattern)] for place in range(sizes.layers))
    mixers = [attention if kind == "attention" else recurrence for kind in kinds]
    return assemble(fields, sizes, _GRIFFIN_FRAME, mixers, (_griffin_mlp(fields, sizes),) * sizes.layers)


def _griffin_mlp(fields: Fields, sizes: Sizes) -> ForwardBlock:
    """Return the MLP; the configuration states the width of gate and up together."""
    mlp = Mlp(
        intermediate=fields.integer("intermediate_size", low=2) // 2,
        gated=True,
        activation=fields.choice(*ACTIVATION_FIELDS, among=ACTIVATIONS, default="gelu_pytorch_tanh"),
    )
    return ForwardBlock(mlp, mlp_tensors(mlp, sizes.hidden, prefix="mlp_block.", bias=True))


def _recurrence(fields: Fields, sizes: Sizes) -> MixerBlock:
    """Return the recurrent block, whose gates are block-diagonal, one block a head.

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


def read_lfm2(fields: Fields) -> Architecture:
    """Read LFM2: gated short convolutions, with attention in some layers."""
    sizes = read_sizes(fields, kv_heads=8)
    style = AttentionStyle(
        names=("q_proj", "k_proj", "v_proj", "out_proj"),
        qk_norm="head",
        qk_tensors=_lfm2_qk_tensors,
        dropout=0.0,
    )
    attention = attention_blocks(fields, sizes, style)[0]
    convolution = _short_conv(fields, sizes.hidden)
    mixers = [attention if attends else convolution for attends in _lfm2_attended(fields, sizes.layers)]
    frame = Frame(norms=("operator_norm", "ffn_norm"), final_norm="model.embedding_norm", tied=True)
    tied = fields.flag("tie_embedding", "tie_word_embeddings", default=True)
    forwards = (_lfm2_mlp(fields, sizes.hidden),) * sizes.layers
    return assemble(fields.over({"tie_word_embeddings": tied}), sizes, frame, mixers, forwards)


def _lfm2_qk_tensors(mixer: Attention) -> Tensors:
    return qk_norm_tensors(mixer, names=("q_layernorm", "k_layernorm"))


def _lfm2_attended(fields: Fields, layers: int) -> tuple[bool, ...]:
    attended = attention_layers(fields, ("layer_types",), layers)
    if attended is not None:
        return attended
    listed = fields.integers("full_attn_idxs")
    return tuple(listed is None or place in listed for place in range(layers))


def _lfm2_mlp(fields: Fields, hidden: int) -> ForwardBlock:
    """Return the MLP; unless told otherwise it is two thirds of the stated width, rounded up to a multiple."""
    width = fields.integer("block_ff_dim", "intermediate_size")
    if fields.flag("block_auto_adjust_ff_dim", default=True):
        scaled = int(fields.number("block_ffn_dim_multiplier", default=1.0) * int(2 * width / 3))
        multiple = fields.integer("block_multiple_of", default=256)
        width = multiple * -(-scaled // multiple)
    mlp = Mlp(intermediate=max(1, width), gated=True)
    return ForwardBlock(mlp, mlp_tensors(mlp, hidden, prefix="feed_forward.", names=("w1", "w3", "w2")))


def _short_conv(fields: Fields, hidden: int) -> MixerBlock:
    """Return a gated convolution over the last few tokens.

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


READERS: Final[Mapping[str, Reader]] = {"lfm2": read_lfm2, "recurrent_gemma": read_recurrent_gemma}
