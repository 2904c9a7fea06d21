"""CLIP and SigLIP: a text tower and a vision tower that meet in one space, together or alone."""

from collections.abc import Mapping
from typing import Final

from planner.models.architecture import Architecture, Layer, Stack
from planner.models.readers.class_defaults import part_of
from planner.models.readers.fields import MAX_LAYERS, Fields
from planner.models.readers.parts import LAYER, Tensors, conv, embedding, linear, norm_tensors, repeated, tensor
from planner.models.readers.registry import Reader
from planner.models.readers.towers import LayerNames, full_attention, patches, plain_mlp, tower_layer, vision_stack

CLIP_NAMES: Final = LayerNames(
    attention=("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj"),
    norms=("layer_norm1", "layer_norm2"),
    mlp=("mlp.fc1", "mlp.fc2"),
)
_CHANNELS: Final = 3
_PROJECTION: Final = 512


def clip_vision(fields: Fields) -> Stack:
    """Return CLIP's vision tower."""
    hidden = fields.integer("hidden_size")
    rows = patches(fields) + 1
    return vision_stack(
        hidden,
        repeated(_layer(fields, hidden, "quick_gelu"), _layers(fields)),
        before=(
            *tensor("embeddings.class_embedding", hidden),
            *_patch_conv(fields, hidden, bias=False),
            *embedding("embeddings.position_embedding", rows, hidden),
            # The checkpoints spell it so.
            *norm_tensors("pre_layrnorm", hidden, LAYER),
        ),
        after=norm_tensors("post_layernorm", hidden, LAYER),
        positions=rows,
    )


def siglip_vision(fields: Fields) -> Stack:
    """Return SigLIP's vision tower, with its pooling head unless it is switched off; Idefics 3 has none."""
    hidden = fields.integer("hidden_size")
    rows = patches(fields)
    head = fields.flag("vision_use_head", default=True) and fields.model_type == "siglip_vision_model"
    return vision_stack(
        hidden,
        repeated(_layer(fields, hidden, "gelu_pytorch_tanh"), _layers(fields)),
        before=(
            *_patch_conv(fields, hidden, bias=True),
            *embedding("embeddings.position_embedding", rows, hidden),
        ),
        after=(
            *norm_tensors("post_layernorm", hidden, LAYER),
            *(_pooling_head(hidden, fields.integer("intermediate_size")) if head else ()),
        ),
        positions=rows,
    )


def _pooling_head(hidden: int, intermediate: int) -> Tensors:
    """Return the attention with one learned query that pools the patches."""
    return (
        *tensor("head.probe", 1, 1, hidden),
        *tensor("head.attention.in_proj_weight", 3 * hidden, hidden, role="linear"),
        *tensor("head.attention.in_proj_bias", 3 * hidden, role="bias"),
        *linear("head.attention.out_proj", hidden, hidden, bias=True),
        *norm_tensors("head.layernorm", hidden, LAYER),
        *linear("head.mlp.fc1", intermediate, hidden, bias=True),
        *linear("head.mlp.fc2", hidden, intermediate, bias=True),
    )


def _text(fields: Fields, activation: str, after: Tensors = ()) -> Stack:
    hidden = fields.integer("hidden_size")
    rows = fields.integer("max_position_embeddings")
    return Stack(
        name="encoder",
        hidden=hidden,
        groups=repeated(_layer(fields, hidden, activation), _layers(fields)),
        before=(
            *embedding("embeddings.token_embedding", fields.integer("vocab_size"), hidden),
            *embedding("embeddings.position_embedding", rows, hidden),
        ),
        after=(*norm_tensors("final_layer_norm", hidden, LAYER), *after),
        # Captions are cut or padded to the length of the table.
        positions=rows,
    )


def read_clip(fields: Fields) -> Architecture:
    """Read CLIP with both towers."""
    text, vision = (
        part_of(fields, "text_config", "clip_text_model"),
        part_of(fields, "vision_config", "clip_vision_model"),
    )
    width = fields.integer("projection_dim", default=_PROJECTION)
    projection = linear("text_projection", width, text.integer("hidden_size"))
    tower = clip_vision(vision)
    meeting = (*linear("visual_projection", width, tower.hidden), *tensor("logit_scale"))
    return _both(fields, text, _text(text, "quick_gelu", projection), tower, meeting)


def read_siglip(fields: Fields) -> Architecture:
    """Read SigLIP with both towers."""
    text = part_of(fields, "text_config", "siglip_text_model")
    vision = part_of(fields, "vision_config", "siglip_vision_model")
    width = text.integer("projection_size", default=text.integer("hidden_size"))
    head = linear("head", width, text.integer("hidden_size"), bias=True)
    meeting = (*tensor("logit_scale", 1), *tensor("logit_bias", 1))
    return _both(fields, text, _text(text, "gelu_pytorch_tanh", head), siglip_vision(vision), meeting)


def _both(fields: Fields, text: Fields, reader: Stack, tower: Stack, meeting: Tensors) -> Architecture:
    """Return both towers; the vision tower comes last and holds what compares the two."""
    return Architecture(
        model_type=fields.model_type,
        kind="vision-encoder",
        hidden=tower.hidden,
        vocabulary=text.integer("vocab_size"),
        max_context=text.integer("max_position_embeddings"),
        stacks=(reader, tower.evolve(after=(*tower.after, *meeting))),
    )


def read_clip_vision(fields: Fields) -> Architecture:
    """Read CLIP's vision tower alone, with its projection where `architectures` says so."""
    tower = clip_vision(fields)
    if _named(fields, "WithProjection"):
        width = fields.integer("projection_dim", default=_PROJECTION)
        tower = tower.evolve(after=(*tower.after, *linear("visual_projection", width, tower.hidden)))
    return Architecture(model_type=fields.model_type, kind="vision-encoder", hidden=tower.hidden, stacks=(tower,))


def read_siglip_vision(fields: Fields) -> Architecture:
    """Read SigLIP's vision tower alone."""
    tower = siglip_vision(fields)
    return Architecture(model_type=fields.model_type, kind="vision-encoder", hidden=tower.hidden, stacks=(tower,))


def read_clip_text(fields: Fields) -> Architecture:
    """Read CLIP's text tower alone, as diffusion models use it, with its projection where `architectures` says so."""
    hidden = fields.integer("hidden_size")
    width = fields.integer("projection_dim", default=_PROJECTION)
    projection = linear("text_projection", width, hidden) if _named(fields, "WithProjection") else ()
    return Architecture(
        model_type=fields.model_type,
        kind="encoder",
        hidden=hidden,
        vocabulary=fields.integer("vocab_size"),
        max_context=fields.integer("max_position_embeddings"),
        stacks=(_text(fields, "quick_gelu", projection),),
    )


def _named(fields: Fields, ending: str) -> bool:
    return (fields.texts("architectures") or ("",))[0].endswith(ending)


def _layer(fields: Fields, hidden: int, activation: str) -> Layer:
    attention = full_attention(fields, hidden, "num_attention_heads", dropout=fields.dropout("attention_dropout"))
    mlp = plain_mlp(fields, fields.integer("intermediate_size"), "hidden_act", default=activation)
    return tower_layer(CLIP_NAMES, hidden, attention, mlp)


def _layers(fields: Fields) -> int:
    return fields.integer("num_hidden_layers", high=MAX_LAYERS)


def _patch_conv(fields: Fields, hidden: int, *, bias: bool) -> Tensors:
    channels = fields.integer("num_channels", default=_CHANNELS)
    return conv("embeddings.patch_embedding", hidden, channels, *fields.pair("patch_size"), bias=bias)


READERS: Final[Mapping[str, Reader]] = {
    "clip": read_clip,
    "clip_text_model": read_clip_text,
    "clip_vision_model": read_clip_vision,
    "siglip": read_siglip,
    "siglip_vision_model": read_siglip_vision,
}
