"""The vision towers of Qwen2-VL, Qwen2.5-VL, Qwen3-VL and Qwen3.5.

They read images at their own resolution, so that the number of patches is not fixed.
"""

from typing import Final

from planner.models.architecture import Attention, Layer, Mlp, Norm, Stack
from planner.models.readers.fields import MAX_LAYERS, Fields
from planner.models.readers.parts import (
    ACTIVATIONS,
    LAYER,
    RMS,
    Tensors,
    conv,
    embedding,
    fused_attention_tensors,
    grouped,
    linear,
    mlp_tensors,
    norm_tensors,
    repeated,
)
from planner.models.readers.towers import full_attention, plain_mlp, vision_stack

_CHANNELS: Final = ("in_channels", "in_chans")
_GATED: Final = ("gate_proj", "up_proj", "down_proj")


def qwen2_vision(fields: Fields) -> Stack:
    """Return the tower of Qwen2-VL, where `hidden_size` is the width of the language model."""
    hidden = fields.integer("embed_dim")
    mlp = plain_mlp(
        fields, int(hidden * fields.number("mlp_ratio", default=4.0, high=1000)), "hidden_act", default="quick_gelu"
    )
    layer = _layer(_attention(fields, hidden), mlp, hidden, LAYER, ("fc1", "fc2"))
    return vision_stack(
        hidden,
        repeated(layer, _depth(fields)),
        before=_patches(fields, hidden, bias=False),
        after=_merger(fields, hidden, fields.integer("hidden_size"), LAYER),
    )


def qwen2_5_vision(fields: Fields) -> Stack:
    """Return the tower of Qwen2.5-VL: all but a few layers attend within windows of the image."""
    hidden = fields.integer("hidden_size")
    whole = frozenset(fields.integers("fullatt_block_indexes") or ())
    side = max(1, fields.integer("window_size") // fields.integer("patch_size"))
    mlp = Mlp(
        intermediate=fields.integer("intermediate_size"),
        gated=True,
        activation=fields.choice("hidden_act", among=ACTIVATIONS, default="silu"),
    )
    attention = _attention(fields, hidden)
    groups = grouped(
        (None if place in whole else side * side for place in range(_depth(fields))),
        lambda window: _layer(attention.evolve(window=window), mlp, hidden, RMS, _GATED),
    )
    return vision_stack(
        hidden,
        groups,
        before=_patches(fields, hidden, bias=False),
        after=_merger(fields, hidden, fields.integer("out_hidden_size"), RMS),
    )


def qwen3_vision(fields: Fields) -> Stack:
    """Return the tower of Qwen3-VL and Qwen3.5; the former hands the features of several layers on."""
    hidden = fields.integer("hidden_size")
    out = fields.integer("out_hidden_size")
    wide = hidden * fields.integer("spatial_merge_size", default=2) ** 2
    mlp = plain_mlp(fields, fields.integer("intermediate_size"), "hidden_act", default="gelu_pytorch_tanh")
    layer = _layer(_attention(fields, hidden), mlp, hidden, LAYER, ("linear_fc1", "linear_fc2"))
    mergers = {"merger": hidden}
    mergers |= {f"deepstack_merger_list.{at}": wide for at in range(fields.size("deepstack_visual_indexes") or 0)}
    return vision_stack(
        hidden,
        repeated(layer, _depth(fields)),
        before=(
            *_patches(fields, hidden, bias=True),
            *embedding("pos_embed", fields.integer("num_position_embeddings"), hidden),
        ),
        after=tuple(
            found
            for name, normed in mergers.items()
            for found in (
                *norm_tensors(f"{name}.norm", normed, LAYER),
                *linear(f"{name}.linear_fc1", wide, wide, bias=True),
                *linear(f"{name}.linear_fc2", out, wide, bias=True),
            )
        ),
    )


def _attention(fields: Fields, hidden: int) -> Attention:
    return full_attention(fields, hidden, "num_heads", rotary=True).evolve(fused_qkv=True)


def _layer(attention: Attention, mlp: Mlp, hidden: int, norm: Norm, names: tuple[str, ...]) -> Layer:
    return Layer(
        mixer=attention,
        feed_forward=mlp,
        norm=norm,
        norm_count=2,
        tensors=(
            *norm_tensors("norm1", hidden, norm),
            *norm_tensors("norm2", hidden, norm),
            *fused_attention_tensors(
                attention, hidden, prefix="attn.", names=("qkv", "proj"), bias=True, out_bias=True
            ),
            *mlp_tensors(mlp, hidden, names=names, bias=True),
        ),
    )


def _depth(fields: Fields) -> int:
    return fields.integer("depth", high=MAX_LAYERS)


def _patches(fields: Fields, hidden: int, *, bias: bool) -> Tensors:
    side = fields.integer("patch_size")
    frames = fields.integer("temporal_patch_size", default=2)
    return conv("patch_embed.proj", hidden, fields.integer(*_CHANNELS, default=3), frames, side, side, bias=bias)


def _merger(fields: Fields, hidden: int, out: int, norm: Norm) -> Tensors:
    """Return the MLP that makes one token of the language model from a square of patches."""
    wide = hidden * fields.integer("spatial_merge_size", default=2) ** 2
    return (
        *norm_tensors("merger.ln_q", hidden, norm),
        *linear("merger.mlp.0", wide, wide, bias=True),
        *linear("merger.mlp.2", out, wide, bias=True),
    )
