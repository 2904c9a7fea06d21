"""Readers of vision transformers: ViT, DeiT, ViViT, DINOv2, DINOv3 and BEiT.

Without an `architectures` field the head is a classifier, as in the most common checkpoints.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from planner.models.architecture import Architecture, Layer, Mlp
from planner.models.readers.blocks import (
    PLAIN_MLP,
    AttentionStyle,
    ExtraTensors,
    FlagSource,
    LayerStyle,
    MlpStyle,
    StackSizes,
    no_tensors,
    read_equal_head_sizes,
    read_flag,
)
from planner.models.readers.config_fields import ConfigFields
from planner.models.readers.registry import Reader
from planner.models.readers.tensors import (
    LAYER,
    TaskHead,
    TaskHeads,
    Tensors,
    biased_linear,
    classification_head,
    conv,
    label_count,
    linear,
    norm_tensors,
    repeat_layer,
    task_head,
    tensor,
)
from planner.models.readers.vision.towers import count_patches, patch_conv, vision_network, vision_stack

_CLASSIFICATION: Final = "ForImageClassification"
_VIDEO: Final = "ForVideoClassification"
_IMAGE: Final = 224
_FRAMES: Final = 32
_TUBELET: Final = (2, 16, 16)
_REGISTERS: Final = 4
_CONVOLUTION: Final = "embeddings.patch_embeddings.projection"

_VIT_LAYER: Final = LayerStyle(
    attention=AttentionStyle(
        prefix="attention.",
        bias=("qkv_bias", True),
        out_bias=True,
        dropout=("attention_probs_dropout_prob", 0.0),
    ),
    mlp=PLAIN_MLP,
    norms=("layernorm_before", "layernorm_after"),
    dropout=("hidden_dropout_prob", 0.0),
)
_VIVIT_LAYER: Final = _VIT_LAYER._replace(mlp=_VIT_LAYER.mlp._replace(activation="gelu_fast"))
_DINO_LAYER: Final = _VIT_LAYER._replace(
    attention=_VIT_LAYER.attention._replace(fp32_softmax=False), norms=("norm1", "norm2")
)
_GATED: Final = MlpStyle(bias=True)
_DINO3_LAYER: Final = _DINO_LAYER._replace(
    attention=AttentionStyle(
        prefix="attention.",
        bias=("query_bias", True),
        key_bias=("key_bias", False),
        out_bias=("proj_bias", True),
        fp32_softmax=False,
        heads_first=True,
    ),
    mlp=PLAIN_MLP._replace(names=("up_proj", "down_proj"), bias=("mlp_bias", True)),
)
# BEiT always has biases, except for the keys.
_BEIT_LAYER: Final = _VIT_LAYER._replace(attention=_VIT_LAYER.attention._replace(bias=True, key_bias=False))


class PatchEmbedding(NamedTuple):
    """Number of patches in an input, and the tensors of the convolution that embeds patches."""

    number: int
    tensors: Tensors


def _image_patches_reader(patch: int, name: str = _CONVOLUTION) -> Callable[[ConfigFields, int], PatchEmbedding]:
    """Return the function that reads the embedding of square patches; `patch` is the default side."""
    return lambda fields, hidden: PatchEmbedding(
        count_patches(fields, _IMAGE, patch), patch_conv(fields, name, hidden, patch=patch)
    )


def _tubelet_embedding(fields: ConfigFields, hidden: int) -> PatchEmbedding:
    """Return the embedding of ViViT's tubelets, which span several frames."""
    tubelet = fields.integers("tubelet_size", low=1) or _TUBELET
    if len(tubelet) != 3:
        fields.fail("tubelet_size", f"must hold frames, height and width, got {len(tubelet)} numbers")
    height, width = fields.pair("image_size", default=_IMAGE)
    frames = fields.integer("num_frames", default=_FRAMES)
    count = (frames // tubelet[0]) * (height // tubelet[1]) * (width // tubelet[2])
    return PatchEmbedding(count, conv(_CONVOLUTION, hidden, fields.integer("num_channels", default=3), *tubelet))


_SQUARES_OF_16: Final = _image_patches_reader(16)


def _vit_heads(fields: ConfigFields, hidden: int) -> TaskHeads:
    pooled = fields.integer("pooler_output_size", default=hidden)
    classes = classification_head(label_count(fields), hidden)
    teachers = ("cls_classifier", "distillation_classifier")
    both = (found for name in teachers for found in linear(name, label_count(fields), hidden, bias=True, role="head"))
    return {
        "Model": TaskHead(after=biased_linear("pooler.dense", pooled, hidden)),
        _CLASSIFICATION: classes,
        _VIDEO: classes,
        "ForImageClassificationWithTeacher": TaskHead(head=tuple(both), labels=label_count(fields)),
    }


class VisionFamily(NamedTuple):
    """Declaration of a family of vision transformers by its differences from ViT.

    `tokens` precede the patches and have positions; `mask` tensors and `registers` have none. `extra_tensors` returns
    the tensors after the convolution, `final_norm` the name of the final norm.
    """

    layer: Callable[[ConfigFields, StackSizes], Layer] = _VIT_LAYER.build_layer
    embed_patches: Callable[[ConfigFields, int], PatchEmbedding] = _SQUARES_OF_16
    tokens: tuple[str, ...] = ("cls_token",)
    mask: ExtraTensors = no_tensors
    registers: int | None = None
    absolute: FlagSource = True
    extra_tensors: ExtraTensors = no_tensors
    final_norm: Callable[[ConfigFields], str] = lambda _: "layernorm"
    heads: Callable[[ConfigFields, int], TaskHeads] = _vit_heads
    task: str = _CLASSIFICATION

    def read(self, fields: ConfigFields) -> Architecture:
        """Return the architecture that a configuration of this family describes."""
        sizes = read_equal_head_sizes(fields)
        hidden = sizes.hidden
        embedded = self.embed_patches(fields, hidden)
        rows = embedded.number + len(self.tokens)
        registers = 0
        if self.registers is not None:
            registers = fields.integer("num_register_tokens", default=self.registers, low=0)
        head = task_head(fields, self.heads(fields, hidden), self.task)
        stack = vision_stack(
            hidden,
            repeat_layer(self.layer(fields, sizes), sizes.layers),
            before=(
                *_token_tensors(self.tokens, hidden),
                *self.mask(fields, sizes),
                *(tensor("embeddings.register_tokens", 1, registers, hidden) if registers else ()),
                *(
                    tensor("embeddings.position_embeddings", 1, rows, hidden, role="embedding")
                    if read_flag(fields, self.absolute)
                    else ()
                ),
                *embedded.tensors,
                *self.extra_tensors(fields, sizes),
            ),
            after=(*norm_tensors(self.final_norm(fields), hidden, LAYER), *head.after),
            positions=rows + registers,
            dropout=fields.dropout("hidden_dropout_prob"),
        )
        return vision_network(fields, stack, head=head)


def _token_tensors(names: tuple[str, ...], hidden: int) -> Tensors:
    return tuple(found for name in names for found in tensor(f"embeddings.{name}", 1, 1, hidden))


def _dino_layer(fields: ConfigFields, sizes: StackSizes) -> Layer:
    """Return DINOv2's layer; its gated MLP has two thirds of the width, rounded up to a multiple of 8."""
    wide = int(sizes.hidden * fields.number("mlp_ratio", default=4.0, low=0.01, high=1000))
    gated = Mlp(intermediate=(int(wide * 2 / 3) + 7) // 8 * 8, gated=True, activation="silu")
    extra = _layer_scale_tensors(sizes)
    if fields.flag("use_swiglu_ffn", default=False):
        layer = _DINO_LAYER._replace(mlp=_GATED).build_layer(fields, sizes, mlp=gated, extra=extra)
    else:
        layer = _DINO_LAYER.build_layer(fields, sizes, width=wide, extra=extra)
    return layer.evolve(scaled=True)


def _dino3_layer(fields: ConfigFields, sizes: StackSizes) -> Layer:
    """Return DINOv3's layer, which rotates queries and keys by the places of their patches."""
    gated = MlpStyle(bias=("mlp_bias", True), activation="gelu", activation_fields=("hidden_act",))
    style = _DINO3_LAYER._replace(mlp=gated) if fields.flag("use_gated_mlp", default=False) else _DINO3_LAYER
    return style.build_layer(fields, sizes, rotary=True, extra=_layer_scale_tensors(sizes)).evolve(scaled=True)


def _layer_scale_tensors(sizes: StackSizes) -> Tensors:
    scales = (f"layer_scale{number}.lambda1" for number in (1, 2))
    return tuple(found for name in scales for found in tensor(name, sizes.hidden))


def _dino_mask_tensor(fields: ConfigFields, sizes: StackSizes) -> Tensors:
    masked = fields.flag("use_mask_token", default=True)
    return tensor("embeddings.mask_token", 1, sizes.hidden) if masked else ()


def _dino_heads(fields: ConfigFields, hidden: int) -> TaskHeads:
    """Return DINOv2's task heads; the classifier reads the class token and the mean of the patches."""
    return {
        "Model": TaskHead(),
        "Backbone": TaskHead(),
        _CLASSIFICATION: classification_head(label_count(fields), 2 * hidden),
    }


def _beit_layer(fields: ConfigFields, sizes: StackSizes) -> Layer:
    """Return BEiT's layer with optional scales and an optional table of relative positions."""
    scaled = fields.number("layer_scale_init_value", default=0.1) > 0
    relative = fields.flag("use_relative_position_bias", default=False)
    extra = (
        *((*tensor("lambda_1", sizes.hidden), *tensor("lambda_2", sizes.hidden)) if scaled else ()),
        *(_relative_position_table(fields, sizes, "relative_position_bias") if relative else ()),
    )
    return _BEIT_LAYER.build_layer(fields, sizes, extra=extra).evolve(scaled=scaled)


def _beit_mask_tensor(fields: ConfigFields, sizes: StackSizes) -> Tensors:
    return _token_tensors(("mask_token",), sizes.hidden) if fields.flag("use_mask_token", default=False) else ()


def _shared_position_table(fields: ConfigFields, sizes: StackSizes) -> Tensors:
    """Return BEiT's table of relative positions that all layers share, if any."""
    if not fields.flag("use_shared_relative_position_bias", default=False):
        return ()
    return _relative_position_table(fields, sizes, "shared_position_bias")


def _relative_position_table(fields: ConfigFields, sizes: StackSizes, name: str) -> Tensors:
    height, width = fields.pair("image_size", default=_IMAGE)
    rows, columns = fields.pair("patch_size", default=16)
    # Three additional distances: class token to patch, patch to class token, class token to itself.
    distances = (2 * (height // rows) - 1) * (2 * (width // columns) - 1) + 3
    return tensor(f"{name}.relative_position_bias_table", distances, sizes.heads)


_DINOV2: Final = VisionFamily(
    layer=_dino_layer, embed_patches=_image_patches_reader(14), mask=_dino_mask_tensor, heads=_dino_heads
)

READERS: Final[Mapping[str, Reader]] = {
    "vit": VisionFamily().read,
    "deit": VisionFamily(tokens=("cls_token", "distillation_token")).read,
    "vivit": VisionFamily(layer=_VIVIT_LAYER.build_layer, embed_patches=_tubelet_embedding, task=_VIDEO).read,
    "dinov2": _DINOV2.read,
    "dinov2_with_registers": _DINOV2._replace(embed_patches=_SQUARES_OF_16, registers=_REGISTERS).read,
    "dinov3_vit": VisionFamily(
        layer=_dino3_layer,
        embed_patches=_image_patches_reader(16, "embeddings.patch_embeddings"),
        mask=lambda _, sizes: tensor("embeddings.mask_token", 1, 1, sizes.hidden),
        registers=0,
        absolute=False,
        final_norm=lambda _: "norm",
        heads=lambda _, __: {"Model": TaskHead(), "Backbone": TaskHead()},
        task="Model",
    ).read,
    "beit": VisionFamily(
        layer=_beit_layer,
        mask=_beit_mask_tensor,
        absolute=("use_absolute_position_embeddings", False),
        extra_tensors=_shared_position_table,
        final_norm=lambda fields: "pooler.layernorm" if fields.flag("use_mean_pooling", default=True) else "layernorm",
        heads=lambda fields, hidden: {
            "Model": TaskHead(),
            _CLASSIFICATION: classification_head(label_count(fields), hidden),
        },
    ).read,
}
