"""Readers of CLIP and SigLIP: a text tower and a vision tower with a joint embedding space, together or alone."""

from collections.abc import Mapping
from typing import Final

from planner.models.architecture import Architecture, Stack
from planner.models.readers.blocks import LayerStyle, read_equal_head_sizes
from planner.models.readers.config_fields import ConfigFields, component_fields
from planner.models.readers.registry import Reader
from planner.models.readers.tensors import (
    LAYER,
    Tensors,
    classification_head,
    embedding,
    label_count,
    linear,
    norm_tensors,
    repeat_layer,
    tensor,
)
from planner.models.readers.vision.towers import CLIP, CLIP_LAYER, SIGLIP, SIGLIP_LAYER, vision_network

_PROJECTION: Final = 512
_CLASSIFICATION: Final = "ForImageClassification"


def _text_tower(fields: ConfigFields, style: LayerStyle, after: Tensors = ()) -> Stack:
    sizes = read_equal_head_sizes(fields)
    rows = fields.integer("max_position_embeddings")
    return Stack(
        name="encoder",
        hidden=sizes.hidden,
        groups=repeat_layer(style.build_layer(fields, sizes), sizes.layers),
        before=(
            *embedding("embeddings.token_embedding", fields.integer("vocab_size"), sizes.hidden),
            *embedding("embeddings.position_embedding", rows, sizes.hidden),
        ),
        after=(*norm_tensors("final_layer_norm", sizes.hidden, LAYER), *after),
        # Captions are truncated or padded to the length of the table.
        positions=rows,
    )


def read_clip(fields: ConfigFields) -> Architecture:
    """Read CLIP with its text tower and its vision tower, or its classifier of images."""
    vision_tower = CLIP.read(component_fields(fields, "vision_config", "clip_vision_model"))
    if _names_class_ending_in(fields, _CLASSIFICATION):
        return _image_classifier(fields, vision_tower)
    text = component_fields(fields, "text_config", "clip_text_model")
    width = fields.integer("projection_dim", default=_PROJECTION)
    projection = linear("text_projection", width, text.integer("hidden_size"))
    comparison_tensors = (*linear("visual_projection", width, vision_tower.hidden), *tensor("logit_scale"))
    return _joint_architecture(
        fields, text, _text_tower(text, CLIP_LAYER, projection), vision_tower, comparison_tensors
    )


def read_siglip(fields: ConfigFields) -> Architecture:
    """Read SigLIP with its text tower and its vision tower, or its classifier of images."""
    vision_tower = SIGLIP.read(component_fields(fields, "vision_config", "siglip_vision_model"))
    if _names_class_ending_in(fields, _CLASSIFICATION):
        return _image_classifier(fields, vision_tower)
    text = component_fields(fields, "text_config", "siglip_text_model")
    width = text.integer("projection_size", default=text.integer("hidden_size"))
    head = linear("head", width, text.integer("hidden_size"), bias=True)
    comparison_tensors = (*tensor("logit_scale", 1), *tensor("logit_bias", 1))
    return _joint_architecture(fields, text, _text_tower(text, SIGLIP_LAYER, head), vision_tower, comparison_tensors)


def _joint_architecture(
    fields: ConfigFields, text: ConfigFields, text_tower: Stack, vision_tower: Stack, comparison_tensors: Tensors
) -> Architecture:
    """Return the network of both towers; the vision tower is last and has the tensors that compare image and text."""
    compared = vision_tower.evolve(after=(*vision_tower.after, *comparison_tensors))
    return vision_network(fields, text_tower, compared).evolve(
        vocabulary=text.integer("vocab_size"), max_context=text.integer("max_position_embeddings")
    )


def _image_classifier(fields: ConfigFields, vision_tower: Stack) -> Architecture:
    """Return the network of the vision tower and a classifier of the mean of its outputs, without a text tower."""
    return vision_network(fields, vision_tower, head=classification_head(label_count(fields), vision_tower.hidden))


def read_clip_vision(fields: ConfigFields) -> Architecture:
    """Read CLIP's vision tower alone, with its projection if `architectures` names it."""
    vision_tower = CLIP.read(fields)
    if _names_class_ending_in(fields, "WithProjection"):
        width = fields.integer("projection_dim", default=_PROJECTION)
        vision_tower = vision_tower.evolve(
            after=(*vision_tower.after, *linear("visual_projection", width, vision_tower.hidden))
        )
    return vision_network(fields, vision_tower)


def read_siglip_vision(fields: ConfigFields) -> Architecture:
    """Read SigLIP's vision tower alone."""
    return vision_network(fields, SIGLIP.read(fields))


def read_clip_text(fields: ConfigFields) -> Architecture:
    """Read CLIP's text tower alone, as in diffusion models, with its projection if `architectures` names it."""
    hidden = fields.integer("hidden_size")
    width = fields.integer("projection_dim", default=_PROJECTION)
    projection = linear("text_projection", width, hidden) if _names_class_ending_in(fields, "WithProjection") else ()
    return Architecture(
        model_type=fields.model_type,
        kind="encoder",
        hidden=hidden,
        vocabulary=fields.integer("vocab_size"),
        max_context=fields.integer("max_position_embeddings"),
        stacks=(_text_tower(fields, CLIP_LAYER, projection),),
    )


def _names_class_ending_in(fields: ConfigFields, class_ending: str) -> bool:
    return (fields.texts("architectures") or ("",))[0].endswith(class_ending)


READERS: Final[Mapping[str, Reader]] = {
    "clip": read_clip,
    "clip_text_model": read_clip_text,
    "clip_vision_model": read_clip_vision,
    "siglip": read_siglip,
    "siglip_vision_model": read_siglip_vision,
}
