"""CLIP and SigLIP: a text tower and a vision tower that meet in one space, together or alone."""

from collections.abc import Mapping
from typing import Final

from planner.models.architecture import Architecture, Stack
from planner.models.readers.blocks import LayerStyle, equal_heads
from planner.models.readers.class_defaults import part_of
from planner.models.readers.fields import Fields
from planner.models.readers.parts import LAYER, Tensors, embedding, linear, norm_tensors, repeated, tensor
from planner.models.readers.registry import Reader
from planner.models.readers.vision.towers import CLIP, CLIP_LAYER, SIGLIP, SIGLIP_LAYER

_PROJECTION: Final = 512


def _text(fields: Fields, style: LayerStyle, after: Tensors = ()) -> Stack:
    sizes = equal_heads(fields)
    rows = fields.integer("max_position_embeddings")
    return Stack(
        name="encoder",
        hidden=sizes.hidden,
        groups=repeated(style.layer(fields, sizes), sizes.layers),
        before=(
            *embedding("embeddings.token_embedding", fields.integer("vocab_size"), sizes.hidden),
            *embedding("embeddings.position_embedding", rows, sizes.hidden),
        ),
        after=(*norm_tensors("final_layer_norm", sizes.hidden, LAYER), *after),
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
    tower = CLIP.read(vision)
    meeting = (*linear("visual_projection", width, tower.hidden), *tensor("logit_scale"))
    return _both(fields, text, _text(text, CLIP_LAYER, projection), tower, meeting)


def read_siglip(fields: Fields) -> Architecture:
    """Read SigLIP with both towers."""
    text = part_of(fields, "text_config", "siglip_text_model")
    vision = part_of(fields, "vision_config", "siglip_vision_model")
    width = text.integer("projection_size", default=text.integer("hidden_size"))
    head = linear("head", width, text.integer("hidden_size"), bias=True)
    meeting = (*tensor("logit_scale", 1), *tensor("logit_bias", 1))
    return _both(fields, text, _text(text, SIGLIP_LAYER, head), SIGLIP.read(vision), meeting)


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
    tower = CLIP.read(fields)
    if _named(fields, "WithProjection"):
        width = fields.integer("projection_dim", default=_PROJECTION)
        tower = tower.evolve(after=(*tower.after, *linear("visual_projection", width, tower.hidden)))
    return Architecture(model_type=fields.model_type, kind="vision-encoder", hidden=tower.hidden, stacks=(tower,))


def read_siglip_vision(fields: Fields) -> Architecture:
    """Read SigLIP's vision tower alone."""
    tower = SIGLIP.read(fields)
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
        stacks=(_text(fields, CLIP_LAYER, projection),),
    )


def _named(fields: Fields, ending: str) -> bool:
    return (fields.texts("architectures") or ("",))[0].endswith(ending)


READERS: Final[Mapping[str, Reader]] = {
    "clip": read_clip,
    "clip_text_model": read_clip_text,
    "clip_vision_model": read_clip_vision,
    "siglip": read_siglip,
    "siglip_vision_model": read_siglip_vision,
}
