"""Reader of a diffusion pipeline from its `model_index.json` and the configurations of its components."""

from collections.abc import Callable, Mapping
from typing import Final

from planner.errors import TRACE_INSTRUCTIONS
from planner.models.architecture import Architecture
from planner.models.diffusion import Component, ImageDecoder, find_networks
from planner.models.layers import Tensor
from planner.models.readers.config_defaults import config_defaults
from planner.models.readers.config_fields import ConfigFields
from planner.models.readers.diffusers.convolutional import read_autoencoder, read_unet
from planner.models.readers.diffusers.transformers import read_flux, read_pixart, read_sd3
from planner.models.readers.registry import Reader, read_fields
from planner.models.readers.tensors import linear, tensor
from planner.models.readers.vision.towers import CLIP

PIPELINE: Final = "diffusers"
"""The `model_type` that stands for a pipeline, because model_index.json has none."""

_NETWORKS: Final[Mapping[str, Callable[[ConfigFields, str], Component]]] = {
    "AutoencoderKL": read_autoencoder,
    "FluxTransformer2DModel": read_flux,
    "PixArtTransformer2DModel": read_pixart,
    "SD3Transformer2DModel": read_sd3,
    "UNet2DConditionModel": read_unet,
}
_TRACE: Final = (
    "Tracing measures its memory without a formula: write a function that returns the component with its inputs, "
    "then use "
    f"{TRACE_INSTRUCTIONS}."
)
_LENGTHS: Final = {"FluxPipeline": 512, "StableDiffusion3Pipeline": 256, "PixArtSigmaPipeline": 300}
"""Defaults of `max_sequence_length`, the length to which pipelines of diffusers pad prompts."""
_LONGEST: Final = 512
MOST_COMPONENTS: Final = 32
"""Upper bound of sizes in untrusted files, well above every published pipeline."""
_SAFETY: Final = "StableDiffusionSafetyChecker"
_PROJECTION: Final = 768
_CONCEPTS: Final = 17 + 3
"""Number of concepts and special-care concepts in diffusers' `safety_checker.py`."""
_UPCASTING: Final = "StableDiffusionXL"
"""Class-name prefix of pipelines that decode in fp32 if the autoencoder has `force_upcast`."""


def read_pipeline(fields: ConfigFields) -> Architecture:
    """Read a diffusion pipeline from a configuration with the configurations of its `components`.

    Raises:
        ModelFileError: If a component is of a class without a formula, or there is no denoiser or no decoder.
    """
    kind = fields.text("_class_name")
    inner = fields.required("components")
    if len(inner.names) > MOST_COMPONENTS:
        fields.fail("components", f"must be at most {MOST_COMPONENTS}, got {len(inner.names):,}")
    components = tuple(_read_component(inner.required(name), name, kind) for name in inner.names)
    try:
        denoiser, _ = find_networks(components)
    except ValueError:
        fields.fail("components", f"of {kind[:60]!r} have no denoiser and decoder with a formula", _TRACE)
    return Architecture(
        model_type=PIPELINE,
        kind="diffusion",
        hidden=denoiser.channels[0] if denoiser.kind == "unet" else denoiser.hidden,
        components=components,
    )


def _read_component(fields: ConfigFields, name: str, pipeline: str) -> Component:
    if not fields.has("_class_name") or fields.has("model_type"):
        return _read_text_encoder(fields, name, pipeline)
    kind = fields.text("_class_name")
    if kind not in _NETWORKS:
        fields.fail("_class_name", f"{kind[:60]!r} has no formula", _TRACE)
    made = _NETWORKS[kind](fields, name)
    if isinstance(made.network, ImageDecoder) and not pipeline.startswith(_UPCASTING):
        return made.evolve(network=made.network.evolve(upcast=False))
    return made


def _read_text_encoder(fields: ConfigFields, name: str, pipeline: str) -> Component:
    if (fields.texts("architectures") or ("",))[0] == _SAFETY:
        return _read_safety_checker(fields, name)
    read = read_fields(fields)
    return Component(
        name=name,
        part="text" if name.startswith("text_encoder") else "other",
        tensors=tuple(
            _repeated_tensor(one, count) for stack in read.stacks for one, count in stack.tensors_with_counts()
        ),
        stacks=read.stacks,
        tokens=read.fixed_length or _LENGTHS.get(pipeline, _LONGEST),
    )


def _read_safety_checker(fields: ConfigFields, name: str) -> Component:
    """Return the safety checker: CLIP's vision tower, a projection, and the embeddings of unsafe concepts."""
    inner = fields.required("vision_config").with_defaults(config_defaults("clip_vision_model"))
    tower = CLIP.read(inner.with_changes({"model_type": "clip_vision_model"}))
    width = fields.integer("projection_dim", default=_PROJECTION)
    more = (
        *linear("visual_projection", width, tower.hidden),
        *tensor("concept_embeds", _CONCEPTS, width),
        *tensor("concept_embeds_weights", _CONCEPTS),
    )
    return Component(
        name=name,
        part="other",
        tensors=(*(_repeated_tensor(one, count) for one, count in tower.tensors_with_counts()), *more),
    )


def _repeated_tensor(tensor: Tensor, count: int) -> Tensor:
    return tensor.evolve(copies=count)


READERS: Final[Mapping[str, Reader]] = {PIPELINE: read_pipeline}
