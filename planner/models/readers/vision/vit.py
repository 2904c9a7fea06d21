"""Vision transformers: ViT, DeiT, ViViT, DINOv2 and BEiT.

Without an `architectures` field the head is a classifier, as in the checkpoints most used.
"""

from collections.abc import Mapping
from typing import Final

from planner.models.architecture import Architecture, Layer, Mlp
from planner.models.readers.fields import MAX_LAYERS, Fields
from planner.models.readers.parts import LAYER, Tensors, conv, linear, norm_tensors, repeated, tensor
from planner.models.readers.registry import Reader
from planner.models.readers.towers import (
    Head,
    LayerNames,
    classifier,
    full_attention,
    labels,
    patches,
    plain_mlp,
    task_head,
    tower_layer,
    vision_stack,
)

_CLASSIFICATION: Final = "ForImageClassification"
_VIDEO: Final = "ForVideoClassification"
_IMAGE: Final = 224
_PATCH: Final = 16
_CHANNELS: Final = 3
_FRAMES: Final = 32
_TUBELET: Final = (2, 16, 16)
_REGISTERS: Final = 4

_ATTENTION: Final = ("attention.q_proj", "attention.k_proj", "attention.v_proj", "attention.o_proj")
_VIT: Final = LayerNames(_ATTENTION, ("layernorm_before", "layernorm_after"), ("mlp.fc1", "mlp.fc2"))
_DINO: Final = LayerNames(_ATTENTION, ("norm1", "norm2"), ("mlp.fc1", "mlp.fc2"))
_DINO_GATED: Final = LayerNames(_ATTENTION, ("norm1", "norm2"), ("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"))


def vision_encoder(
    fields: Fields, head: Head, layer: Layer, hidden: int, *, before: Tensors, after: Tensors, positions: int
) -> Architecture:
    """Return a network of one vision tower of equal layers and the head of its task."""
    stack = vision_stack(
        hidden,
        repeated(layer, fields.integer("num_hidden_layers", high=MAX_LAYERS)),
        before=before,
        after=(*after, *head.after),
        positions=positions,
        dropout=fields.dropout("hidden_dropout_prob"),
    )
    return Architecture(
        model_type=fields.model_type,
        kind="vision-encoder",
        hidden=hidden,
        stacks=(stack,),
        head=head.head,
        labels=head.labels,
    )


def read_vit(fields: Fields) -> Architecture:
    """Read ViT, and DeiT with its second token."""
    hidden = fields.integer("hidden_size")
    tokens = ("cls_token", "distillation_token") if fields.model_type == "deit" else ("cls_token",)
    positions = patches(fields, _IMAGE, _PATCH) + len(tokens)
    return vision_encoder(
        fields,
        task_head(fields, _vit_heads(fields, hidden), _CLASSIFICATION),
        _vit_layer(fields, hidden, qkv_bias=fields.flag("qkv_bias", default=True)),
        hidden,
        before=(*_tokens(tokens, hidden), *_positions(positions, hidden), *_patch_conv(fields, hidden)),
        after=norm_tensors("layernorm", hidden, LAYER),
        positions=positions,
    )


def read_vivit(fields: Fields) -> Architecture:
    """Read ViViT, which cuts a clip into tubelets of several frames."""
    hidden = fields.integer("hidden_size")
    tubelet = fields.integers("tubelet_size", low=1) or _TUBELET
    if len(tubelet) != 3:
        fields.fail("tubelet_size", f"must hold frames, height and width, got {len(tubelet)} numbers")
    height, width = fields.pair("image_size", default=_IMAGE)
    frames = fields.integer("num_frames", default=_FRAMES)
    positions = (frames // tubelet[0]) * (height // tubelet[1]) * (width // tubelet[2]) + 1
    patch = conv(
        "embeddings.patch_embeddings.projection", hidden, fields.integer("num_channels", default=_CHANNELS), *tubelet
    )
    return vision_encoder(
        fields,
        task_head(fields, _vit_heads(fields, hidden), _VIDEO),
        _vit_layer(fields, hidden, qkv_bias=fields.flag("qkv_bias", default=True), activation="gelu_fast"),
        hidden,
        before=(*_tokens(("cls_token",), hidden), *_positions(positions, hidden), *patch),
        after=norm_tensors("layernorm", hidden, LAYER),
        positions=positions,
    )


def read_dinov2(fields: Fields) -> Architecture:
    """Read DINOv2, with or without registers; its classifier sees the class token beside the mean of the patches."""
    hidden = fields.integer("hidden_size")
    has_registers = fields.model_type == "dinov2_with_registers"
    registers = fields.integer("num_register_tokens", default=_REGISTERS, low=0) if has_registers else 0
    rows = patches(fields, _IMAGE, _PATCH if has_registers else 14) + 1
    heads = {"Model": Head(), "Backbone": Head(), _CLASSIFICATION: classifier(labels(fields), 2 * hidden)}
    mask = tensor("embeddings.mask_token", 1, hidden) if fields.flag("use_mask_token", default=True) else ()
    return vision_encoder(
        fields,
        task_head(fields, heads, _CLASSIFICATION),
        _dino_layer(fields, hidden),
        hidden,
        before=(
            *_tokens(("cls_token",), hidden),
            *mask,
            *(tensor("embeddings.register_tokens", 1, registers, hidden) if registers else ()),
            *_positions(rows, hidden),
            *_patch_conv(fields, hidden),
        ),
        after=norm_tensors("layernorm", hidden, LAYER),
        positions=rows + registers,
    )


def read_beit(fields: Fields) -> Architecture:
    """Read BEiT, whose positions may be absolute, relative in each layer, or relative in one table for all."""
    hidden = fields.integer("hidden_size")
    positions = patches(fields, _IMAGE, _PATCH) + 1
    absolute = fields.flag("use_absolute_position_embeddings", default=False)
    mask = _tokens(("mask_token",), hidden) if fields.flag("use_mask_token", default=False) else ()
    shared = fields.flag("use_shared_relative_position_bias", default=False)
    final = "pooler.layernorm" if fields.flag("use_mean_pooling", default=True) else "layernorm"
    heads = {"Model": Head(), _CLASSIFICATION: classifier(labels(fields), hidden)}
    return vision_encoder(
        fields,
        task_head(fields, heads, _CLASSIFICATION),
        _beit_layer(fields, hidden),
        hidden,
        before=(
            *_tokens(("cls_token",), hidden),
            *mask,
            *(_positions(positions, hidden) if absolute else ()),
            *_patch_conv(fields, hidden),
            *(_relative_table(fields, "shared_position_bias") if shared else ()),
        ),
        after=norm_tensors(final, hidden, LAYER),
        positions=positions,
    )


def _vit_heads(fields: Fields, hidden: int) -> Mapping[str, Head]:
    pooled = fields.integer("pooler_output_size", default=hidden)
    classes = classifier(labels(fields), hidden)
    teacher = linear("distillation_classifier", labels(fields), hidden, bias=True, role="head")
    both = (*linear("cls_classifier", labels(fields), hidden, bias=True, role="head"), *teacher)
    return {
        "Model": Head(after=linear("pooler.dense", pooled, hidden, bias=True)),
        _CLASSIFICATION: classes,
        _VIDEO: classes,
        "ForImageClassificationWithTeacher": Head(head=both, labels=labels(fields)),
    }


def _vit_layer(
    fields: Fields,
    hidden: int,
    *,
    activation: str = "gelu",
    qkv_bias: bool = True,
    key_bias: bool | None = None,
    extra: Tensors = (),
) -> Layer:
    attention = full_attention(
        fields, hidden, "num_attention_heads", dropout=fields.dropout("attention_probs_dropout_prob")
    )
    dropout = fields.dropout("hidden_dropout_prob")
    mlp = plain_mlp(fields, fields.integer("intermediate_size"), "hidden_act", default=activation)
    return tower_layer(_VIT, hidden, attention, mlp, qkv_bias=qkv_bias, key_bias=key_bias, dropout=dropout, extra=extra)


def _dino_layer(fields: Fields, hidden: int) -> Layer:
    attention = full_attention(
        fields,
        hidden,
        "num_attention_heads",
        dropout=fields.dropout("attention_probs_dropout_prob"),
        fp32_softmax=False,
    )
    wide = int(hidden * fields.number("mlp_ratio", default=4.0, low=0.01, high=1000))
    gated = fields.flag("use_swiglu_ffn", default=False)
    # A gated MLP keeps two thirds of the width, rounded up to a multiple of 8.
    gated_mlp = Mlp(intermediate=(int(wide * 2 / 3) + 7) // 8 * 8, gated=True, activation="silu")
    scales = tuple(found for name in ("layer_scale1", "layer_scale2") for found in tensor(f"{name}.lambda1", hidden))
    return tower_layer(
        _DINO_GATED if gated else _DINO,
        hidden,
        attention,
        gated_mlp if gated else plain_mlp(fields, wide, "hidden_act"),
        qkv_bias=fields.flag("qkv_bias", default=True),
        dropout=fields.dropout("hidden_dropout_prob"),
        extra=scales,
    ).evolve(scaled=True)


def _beit_layer(fields: Fields, hidden: int) -> Layer:
    scaled = fields.number("layer_scale_init_value", default=0.1) > 0
    relative = fields.flag("use_relative_position_bias", default=False)
    extra = (
        *((*tensor("lambda_1", hidden), *tensor("lambda_2", hidden)) if scaled else ()),
        *(_relative_table(fields, "relative_position_bias") if relative else ()),
    )
    return _vit_layer(fields, hidden, extra=extra, key_bias=False).evolve(scaled=scaled)


def _relative_table(fields: Fields, name: str) -> Tensors:
    height, width = fields.pair("image_size", default=_IMAGE)
    rows, columns = fields.pair("patch_size", default=_PATCH)
    # Three more distances: class token to patch, patch to class token, class token to itself.
    distances = (2 * (height // rows) - 1) * (2 * (width // columns) - 1) + 3
    heads = fields.integer("num_attention_heads", high=MAX_LAYERS)
    return tensor(f"{name}.relative_position_bias_table", distances, heads)


def _tokens(names: tuple[str, ...], hidden: int) -> Tensors:
    return tuple(found for name in names for found in tensor(f"embeddings.{name}", 1, 1, hidden))


def _positions(rows: int, hidden: int) -> Tensors:
    return tensor("embeddings.position_embeddings", 1, rows, hidden, role="embedding")


def _patch_conv(fields: Fields, hidden: int) -> Tensors:
    default = 14 if fields.model_type == "dinov2" else _PATCH
    kernel = fields.pair("patch_size", default=default)
    channels = fields.integer("num_channels", default=_CHANNELS)
    return conv("embeddings.patch_embeddings.projection", hidden, channels, *kernel)


READERS: Final[Mapping[str, Reader]] = {
    "beit": read_beit,
    "deit": read_vit,
    "dinov2": read_dinov2,
    "dinov2_with_registers": read_dinov2,
    "vit": read_vit,
    "vivit": read_vivit,
}
