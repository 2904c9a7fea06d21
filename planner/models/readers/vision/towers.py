"""Readers of vision towers of multimodal models, by `model_type`.

**Source**: the modelling code of transformers 5.23; tensor names are those of the published checkpoints.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, NamedTuple

from planner.models.architecture import Architecture, LayerGroup, Norm, Stack
from planner.models.layers import ImageReading, Packing
from planner.models.readers.blocks import (
    PLAIN_MLP,
    AttentionStyle,
    DropoutSource,
    ExtraTensors,
    LayerStyle,
    MlpStyle,
    StackSizes,
    no_tensors,
    read_dropout,
    read_equal_head_sizes,
)
from planner.models.readers.config_fields import MAX_LAYERS, ConfigFields
from planner.models.readers.tensors import (
    LAYER,
    RMS,
    TaskHead,
    Tensors,
    conv,
    embedding,
    group_layers,
    linear,
    norm_tensors,
    qk_norm_tensors,
    repeat_layer,
    tensor,
)

_NO_HEAD: Final = TaskHead()
_QKVO: Final = ("q_proj", "k_proj", "v_proj", "o_proj")
CLIP_LAYER: Final = LayerStyle(
    attention=AttentionStyle(names=("q_proj", "k_proj", "v_proj", "out_proj"), bias=True, out_bias=True),
    mlp=PLAIN_MLP._replace(activation="quick_gelu"),
    norms=("layer_norm1", "layer_norm2"),
)
SIGLIP_LAYER: Final = CLIP_LAYER._replace(mlp=PLAIN_MLP._replace(activation="gelu_pytorch_tanh"))


def count_patches(fields: ConfigFields, image: int | None = None, patch: int | None = None) -> int:
    """Return the number of patches of an image; `image` and `patch` are the family's default sizes."""
    height, width = fields.pair("image_size", default=image)
    rows, columns = fields.pair("patch_size", default=patch)
    if height < rows or width < columns:
        fields.fail("image_size", f"is {height} × {width}, smaller than a patch of {rows} × {columns}")
    return (height // rows) * (width // columns)


def patch_conv(fields: ConfigFields, name: str, hidden: int, *, patch: int | None = None, bias: bool = True) -> Tensors:
    """Return the convolution that embeds patches; `patch` is the family's default patch size."""
    kernel = fields.pair("patch_size", default=patch)
    return conv(name, hidden, fields.integer("num_channels", default=3), *kernel, bias=bias)


def vision_stack(
    hidden: int,
    groups: tuple[LayerGroup, ...],
    *,
    before: Tensors,
    after: Tensors = (),
    positions: int | None = None,
    dropout: float = 0.0,
) -> Stack:
    """Return a vision tower of the layers `groups`; `positions` is its sequence length if fixed."""
    return Stack(
        name="vision",
        hidden=hidden,
        groups=groups,
        before=before,
        after=after,
        positions=positions,
        embedding_dropout=dropout,
    )


def vision_network(fields: ConfigFields, *stacks: Stack, head: TaskHead = _NO_HEAD) -> Architecture:
    """Return the network of these stacks, of which a vision tower is the last, with a head of its output."""
    return Architecture(
        model_type=fields.model_type,
        kind="vision-encoder",
        hidden=stacks[-1].hidden,
        stacks=stacks,
        head=head.head,
        labels=head.labels,
    )


class TowerFamily(NamedTuple):
    """Declaration of a vision tower of identical layers; the defaults are CLIP's.

    `before` gets the sequence length, which is the number of patches plus `tokens`, or 0 for towers that accept images
    of any size. `layer_tensors` returns additional tensors of each layer.
    """

    before: Callable[[ConfigFields, StackSizes, int], Tensors]
    after: ExtraTensors = no_tensors
    layer: LayerStyle = CLIP_LAYER
    layer_tensors: ExtraTensors = no_tensors
    tokens: int | None = 1
    rotary: bool = False
    dropout: DropoutSource = 0.0
    packing: Packing = "apart"
    named_streams: int = 0

    def read(self, fields: ConfigFields) -> Stack:
        """Return the vision tower that a configuration of this family describes."""
        sizes = read_equal_head_sizes(fields)
        rows = None if self.tokens is None else count_patches(fields) + self.tokens
        layer = self.layer.build_layer(fields, sizes, rotary=self.rotary, extra=self.layer_tensors(fields, sizes))
        layer = layer.evolve(named_streams=self.named_streams)
        return vision_stack(
            sizes.hidden,
            repeat_layer(layer, sizes.layers),
            before=self.before(fields, sizes, rows or 0),
            after=self.after(fields, sizes),
            positions=rows,
            dropout=read_dropout(fields, self.dropout),
        ).evolve(images=ImageReading(packing=self.packing))


def post_norm_tensors(_: ConfigFields, sizes: StackSizes) -> Tensors:
    """Return the tensors of the final norm of CLIP's towers."""
    return norm_tensors("post_layernorm", sizes.hidden, LAYER)


def _clip_embedding_tensors(fields: ConfigFields, sizes: StackSizes, rows: int) -> Tensors:
    hidden = sizes.hidden
    return (
        *tensor("embeddings.class_embedding", hidden),
        *patch_conv(fields, "embeddings.patch_embedding", hidden, bias=False),
        *embedding("embeddings.position_embedding", rows, hidden),
        # The checkpoints have this typo.
        *norm_tensors("pre_layrnorm", hidden, LAYER),
    )


def _siglip_embedding_tensors(fields: ConfigFields, sizes: StackSizes, rows: int) -> Tensors:
    convolution = patch_conv(fields, "embeddings.patch_embedding", sizes.hidden)
    return (*convolution, *embedding("embeddings.position_embedding", rows, sizes.hidden))


def _siglip_final_tensors(fields: ConfigFields, sizes: StackSizes) -> Tensors:
    """Return the tensors of SigLIP's final norm and pooling head, which a configuration can disable."""
    head = fields.flag("vision_use_head", default=True) and fields.model_type == "siglip_vision_model"
    return (
        *post_norm_tensors(fields, sizes),
        *(_pooling_head_tensors(sizes.hidden, fields.integer("intermediate_size")) if head else ()),
    )


def _pooling_head_tensors(hidden: int, intermediate: int) -> Tensors:
    """Return the tensors of SigLIP's attention with one learned query, which pools the patches."""
    return (
        *tensor("head.probe", 1, 1, hidden),
        *tensor("head.attention.in_proj_weight", 3 * hidden, hidden, role="linear"),
        *tensor("head.attention.in_proj_bias", 3 * hidden, role="bias"),
        *linear("head.attention.out_proj", hidden, hidden, bias=True),
        *norm_tensors("head.layernorm", hidden, LAYER),
        *linear("head.mlp.fc1", intermediate, hidden, bias=True),
        *linear("head.mlp.fc2", hidden, intermediate, bias=True),
    )


def _pixtral_embedding_tensors(fields: ConfigFields, sizes: StackSizes, _: int) -> Tensors:
    convolution = patch_conv(fields, "patch_conv", sizes.hidden, bias=False)
    return (*convolution, *norm_tensors("ln_pre", sizes.hidden, RMS))


def _internvl_tower(fields: ConfigFields) -> Stack:
    norm = fields.choice("norm_type", among={"layer_norm": LAYER, "rms_norm": RMS}, default="layer_norm")
    return _INTERNVL._replace(layer=_INTERNVL.layer._replace(norm=norm)).read(fields)


def _internvl_embedding_tensors(fields: ConfigFields, sizes: StackSizes, rows: int) -> Tensors:
    hidden = sizes.hidden
    masked = fields.flag("use_mask_token", default=False)
    absolute = fields.flag("use_absolute_position_embeddings", default=True)
    return (
        *tensor("embeddings.cls_token", 1, 1, hidden),
        *(tensor("embeddings.mask_token", 1, 1, hidden) if masked else ()),
        *(tensor("embeddings.position_embeddings", 1, rows, hidden, role="embedding") if absolute else ()),
        *patch_conv(fields, "embeddings.patch_embeddings.projection", hidden),
    )


def _internvl_final_tensors(fields: ConfigFields, sizes: StackSizes) -> Tensors:
    pooled = fields.flag("use_mean_pooling", default=True)
    return () if pooled else norm_tensors("layernorm", sizes.hidden, LAYER)


def _llama4_embedding_tensors(fields: ConfigFields, sizes: StackSizes, rows: int) -> Tensors:
    height, width = fields.pair("patch_size")
    pixels = fields.integer("num_channels", default=3) * height * width
    return (
        *tensor("class_embedding", sizes.hidden),
        *tensor("positional_embedding_vlm", rows, sizes.hidden, role="embedding"),
        *linear("patch_embedding.linear", sizes.hidden, pixels),
        *norm_tensors("layernorm_pre", sizes.hidden, LAYER),
    )


def _llama4_final_tensors(fields: ConfigFields, sizes: StackSizes) -> Tensors:
    middle, out = fields.integer("projector_input_dim"), fields.integer("projector_output_dim")
    return (
        *norm_tensors("layernorm_post", sizes.hidden, LAYER),
        *linear("vision_adapter.mlp.fc1", middle, fields.integer("intermediate_size")),
        *linear("vision_adapter.mlp.fc2", out, out),
    )


# The patches of a tile of mllama are padded to a multiple of this.
_PADDING: Final = 8
_ASPECT_RATIOS: Final = 8
_TILES: Final = 4
_MLLAMA_LAYER: Final = LayerStyle(
    attention=AttentionStyle(names=_QKVO, dropout=0.0),
    mlp=PLAIN_MLP,
    norms=("input_layernorm", "post_attention_layernorm"),
)


def _mllama_tower(fields: ConfigFields) -> Stack:
    """Return the tower of Llama 3.2: local layers and gated global layers over all tiles of an image at once."""
    sizes = read_equal_head_sizes(fields, heads=("attention_heads",))
    gates = (*tensor("gate_attn", 1), *tensor("gate_ffn", 1))
    local = sizes.layers
    layers = local + fields.integer("num_global_layers", high=MAX_LAYERS)
    rows = count_patches(fields) + 1
    tiles = fields.integer("max_num_tiles", default=_TILES)
    groups = group_layers(
        (index >= local for index in range(layers)),
        lambda gated: _MLLAMA_LAYER.build_layer(fields, sizes, extra=gates if gated else ()),
    )
    return vision_stack(
        sizes.hidden,
        groups,
        before=_mllama_embedding_tensors(fields, sizes.hidden, rows, tiles),
        after=norm_tensors("layernorm_post", sizes.hidden, LAYER),
        positions=tiles * -(-rows // _PADDING) * _PADDING,
    )


def _mllama_embedding_tensors(fields: ConfigFields, hidden: int, rows: int, tiles: int) -> Tensors:
    ratios = (fields.length("supported_aspect_ratios") or _ASPECT_RATIOS) + 1
    table = "gated_positional_embedding"
    return (
        *tensor("class_embedding", hidden),
        *patch_conv(fields, "patch_embedding", hidden, bias=False),
        *tensor(f"{table}.gate", 1),
        *tensor(f"{table}.embedding", rows, hidden, role="embedding"),
        *embedding(f"{table}.tile_embedding", ratios, tiles * rows * hidden),
        *tensor("pre_tile_positional_embedding.gate", 1),
        *embedding("pre_tile_positional_embedding.embedding", ratios, tiles * hidden),
        *tensor("post_tile_positional_embedding.gate", 1),
        *embedding("post_tile_positional_embedding.embedding", ratios, tiles * hidden),
        *norm_tensors("layernorm_pre", hidden, LAYER),
    )


_QWEN_LAYER: Final = LayerStyle(
    attention=AttentionStyle(
        prefix="attn.", names=("qkv", "proj"), bias=True, out_bias=True, dropout=0.0, fp32_rotation=True, joined=True
    ),
    mlp=PLAIN_MLP._replace(activation="quick_gelu"),
    norms=("norm1", "norm2"),
)
_QWEN2_5_LAYER: Final = _QWEN_LAYER._replace(
    mlp=PLAIN_MLP._replace(names=("gate_proj", "up_proj", "down_proj"), activation="silu"),
    norm=RMS,
)
_QWEN3_LAYER: Final = _QWEN_LAYER._replace(
    mlp=PLAIN_MLP._replace(names=("linear_fc1", "linear_fc2"), activation="gelu_pytorch_tanh")
)


def _qwen_sizes(fields: ConfigFields, hidden: str = "hidden_size") -> StackSizes:
    return read_equal_head_sizes(fields, hidden=(hidden,), heads=("num_heads",), layers=("depth",))


def _qwen_images(sizes: StackSizes, *, learned: bool = False) -> ImageReading:
    """Return how Qwen's towers read images; cosines, sines and `learned` positions are in fp32."""
    return ImageReading(packing="split", position_bytes=4 * (2 * sizes.head_dim + (sizes.hidden if learned else 0)))


def _qwen2_tower(fields: ConfigFields) -> Stack:
    """Return the tower of Qwen2-VL, whose `hidden_size` is the width of the language model."""
    sizes = _qwen_sizes(fields, "embed_dim")
    wide = int(sizes.hidden * fields.number("mlp_ratio", default=4.0, high=1000))
    layer = _QWEN_LAYER.build_layer(fields, sizes, rotary=True, width=wide)
    return vision_stack(
        sizes.hidden,
        repeat_layer(layer, sizes.layers),
        before=_qwen_patch_tensors(fields, sizes, bias=False),
        after=_qwen_merger_tensors(fields, sizes.hidden, fields.integer("hidden_size"), LAYER),
    ).evolve(images=_qwen_images(sizes))


def _qwen2_5_tower(fields: ConfigFields) -> Stack:
    """Return the tower of Qwen2.5-VL: all but a few layers attend within windows of the image."""
    sizes = _qwen_sizes(fields)
    whole = frozenset(fields.integers("fullatt_block_indexes") or ())
    side = max(1, fields.integer("window_size") // fields.integer("patch_size"))
    groups = group_layers(
        (None if index in whole else side * side for index in range(sizes.layers)),
        lambda window: _QWEN2_5_LAYER.build_layer(fields, sizes, rotary=True, window=window),
    )
    return vision_stack(
        sizes.hidden,
        groups,
        before=_qwen_patch_tensors(fields, sizes, bias=False),
        after=_qwen_merger_tensors(fields, sizes.hidden, fields.integer("out_hidden_size"), RMS),
    ).evolve(images=_qwen_images(sizes))


def _qwen3_tower(fields: ConfigFields) -> Stack:
    """Return the tower of Qwen3-VL and Qwen3.5; Qwen3-VL also outputs the features of several layers."""
    sizes = _qwen_sizes(fields)
    hidden, out = sizes.hidden, fields.integer("out_hidden_size")
    wide = hidden * fields.integer("spatial_merge_size", default=2) ** 2
    mergers = {"merger": hidden}
    mergers |= {f"deepstack_merger_list.{at}": wide for at in range(fields.length("deepstack_visual_indexes") or 0)}
    return vision_stack(
        hidden,
        repeat_layer(_QWEN3_LAYER.build_layer(fields, sizes, rotary=True), sizes.layers),
        before=(
            *_qwen_patch_tensors(fields, sizes, bias=True),
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
    ).evolve(images=_qwen_images(sizes, learned=True))


def _qwen_patch_tensors(fields: ConfigFields, sizes: StackSizes, *, bias: bool) -> Tensors:
    side = fields.integer("patch_size")
    frames = fields.integer("temporal_patch_size", default=2)
    channels = fields.integer("in_channels", "in_chans", default=3)
    return conv("patch_embed.proj", sizes.hidden, channels, frames, side, side, bias=bias)


def _qwen_merger_tensors(fields: ConfigFields, hidden: int, out_features: int, norm: Norm) -> Tensors:
    """Return the tensors of Qwen's MLP that merges a square of patches into one token."""
    wide = hidden * fields.integer("spatial_merge_size", default=2) ** 2
    return (
        *norm_tensors("merger.ln_q", hidden, norm),
        *linear("merger.mlp.0", wide, wide, bias=True),
        *linear("merger.mlp.2", out_features, wide, bias=True),
    )


CLIP: Final = TowerFamily(before=_clip_embedding_tensors, after=post_norm_tensors)
SIGLIP: Final = TowerFamily(before=_siglip_embedding_tensors, after=_siglip_final_tensors, layer=SIGLIP_LAYER, tokens=0)
_PIXTRAL: Final = TowerFamily(
    before=_pixtral_embedding_tensors,
    layer=LayerStyle(
        attention=AttentionStyle(prefix="attention.", names=_QKVO),
        mlp=MlpStyle(
            prefix="feed_forward.", activation="gelu", activation_fields=("hidden_act",), width=("intermediate_size",)
        ),
        norm=RMS,
        norms=("attention_norm", "ffn_norm"),
    ),
    tokens=None,
    rotary=True,
    packing="masked",
)
_INTERNVL: Final = TowerFamily(
    before=_internvl_embedding_tensors,
    after=_internvl_final_tensors,
    layer=LayerStyle(
        attention=AttentionStyle(
            prefix="attention.",
            names=("q_proj", "k_proj", "v_proj", "projection_layer"),
            bias=("attention_bias", False),
            out_bias=True,
            qk_norm="all",
            qk_norm_when=("use_qk_norm", False),
            qk_tensors=partial(qk_norm_tensors, prefix="attention."),
            fp32_softmax=False,
        ),
        mlp=PLAIN_MLP,
        norms=("layernorm_before", "layernorm_after"),
        dropout=("hidden_dropout_prob", 0.0),
        scaled=True,
    ),
    layer_tensors=lambda _, sizes: tensor("lambda_1", sizes.hidden) + tensor("lambda_2", sizes.hidden),
    named_streams=1,
    dropout=("hidden_dropout_prob", 0.0),
)
_LLAMA4: Final = TowerFamily(
    before=_llama4_embedding_tensors,
    after=_llama4_final_tensors,
    layer=_MLLAMA_LAYER._replace(attention=AttentionStyle(names=_QKVO, bias=True, out_bias=True, fp32_softmax=False)),
    rotary=True,
)

TOWERS: Final[Mapping[str, Callable[[ConfigFields], Stack]]] = {
    "clip_vision_model": CLIP.read,
    "idefics3_vision": SIGLIP.read,
    "internvl_vision": _internvl_tower,
    "llama4_vision_model": _LLAMA4.read,
    "mllama_vision_model": _mllama_tower,
    "pixtral": _PIXTRAL.read,
    "qwen2_5_vl_vision": _qwen2_5_tower,
    "qwen2_vl_vision": _qwen2_tower,
    "qwen3_5_moe_vision": _qwen3_tower,
    "qwen3_5_vision": _qwen3_tower,
    "qwen3_vl_moe_vision": _qwen3_tower,
    "qwen3_vl_vision": _qwen3_tower,
    "siglip_vision_model": SIGLIP.read,
    "smolvlm_vision": SIGLIP.read,
}


def vision_tower(fields: ConfigFields) -> Stack:
    """Return the vision tower that `fields`, a part of a configuration, describes.

    Raises:
        ModelFileError: If its `model_type` is not known.
    """
    return fields.choice("model_type", among=TOWERS)(fields)
