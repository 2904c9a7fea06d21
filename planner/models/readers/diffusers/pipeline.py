"""Reader of a diffusion pipeline from its `model_index.json` and the configurations of its components."""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from planner.errors import TRACE_INSTRUCTIONS, ModelFileError
from planner.models.architecture import Architecture
from planner.models.diffusion import Component, ImageDecoder, find_networks
from planner.models.layers import Tensor
from planner.models.readers.config_fields import ConfigFields, config_defaults
from planner.models.readers.config_json import MAX_FILE_BYTES, parse_config, read_config
from planner.models.readers.diffusers.convolutional import read_autoencoder, read_unet
from planner.models.readers.diffusers.transformers import read_flux, read_pixart, read_sd3
from planner.models.readers.registry import Reader, read_fields
from planner.models.readers.safetensors import FileTensor, read_checkpoint
from planner.models.readers.sources import read_whole
from planner.models.readers.stored import sum_stored
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


MODEL_INDEX: Final = "model_index.json"
WEIGHT_NAMES: Final = tuple(
    f"{stem}{variant}.safetensors{ending}"
    for variant in ("", ".fp16", ".bf16")
    for stem in ("diffusion_pytorch_model", "model")
    for ending in (".index.json", "")
)
"""File names of a component's weights in order of preference: full precision first, an index before a single file."""

_NAME: Final = re.compile(r"[A-Za-z0-9]\w{0,63}", re.ASCII)
_CONFIG: Final = "config.json"

ComponentConfigReader = Callable[[str], Mapping[str, object] | None]
ComponentTensorsReader = Callable[[str], Iterable[FileTensor] | None]


def read_pipeline_folder(folder: Path) -> Architecture:
    """Read the diffusion pipeline in `folder`, with stored sizes from the headers of its safetensors files.

    Raises:
        ModelFileError: If a file cannot be read, or a component has no formula.
    """

    def read_component_config(name: str) -> Mapping[str, object] | None:
        file = folder / name / _CONFIG
        return _read_component_config(file) if os.path.lexists(file) else None

    def read_component_tensors(name: str) -> Iterable[FileTensor] | None:
        files = (folder / name / file for file in WEIGHT_NAMES)
        found = next((file for file in files if os.path.lexists(file)), None)
        return None if found is None else read_checkpoint(found).tensors

    return read_pipeline_files(
        _read_component_config(folder / MODEL_INDEX),
        read_component_config,
        read_component_tensors,
        str(folder / MODEL_INDEX),
    )


def read_pipeline_files(
    index: Mapping[str, object],
    read_component_config: ComponentConfigReader,
    read_component_tensors: ComponentTensorsReader,
    source: str,
) -> Architecture:
    """Return the pipeline that the model_index.json `index` describes; `source` names the pipeline in errors.

    `read_component_config` returns the configuration in a component's folder, and `read_component_tensors` the tensors
    of its weights. Without them they return None: tokenizers and schedulers have no parameters.

    Raises:
        ModelFileError: If the index is invalid, or a component has no formula.
    """
    kind = ConfigFields(index, source).text("_class_name")
    configs = {
        name: config for name in _component_names(index, source) if (config := read_component_config(name)) is not None
    }
    read = read_config({"model_type": PIPELINE, "_class_name": kind, "components": configs}, source)
    with_stored = tuple(
        _with_stored_tensors(component, read_component_tensors(component.name)) for component in read.components
    )
    lacking = [component.name for component in with_stored if not component.stored]
    notes = (f"no safetensors files of {', '.join(lacking)}: their bytes follow from the configuration",)
    return read.evolve(
        components=with_stored, container="safetensors", reader_notes=(*read.reader_notes, *(notes if lacking else ()))
    )


def _component_names(index: Mapping[str, object], source: str) -> list[str]:
    """Return the folders of the components, which are entries of the form `[library, class]`."""
    found = [
        name
        for name, value in index.items()
        if not name.startswith("_") and isinstance(value, list | tuple) and any(part is not None for part in value)
    ]
    if len(found) > MOST_COMPONENTS or not all(_NAME.fullmatch(name) for name in found):
        raise ModelFileError(source, "has invalid component names", "Choose the folder of a diffusers pipeline.")
    return found


def _read_component_config(file: Path) -> Mapping[str, object]:
    return parse_config(read_whole(file, MAX_FILE_BYTES, file.name), str(file))


def _with_stored_tensors(component: Component, tensors: Iterable[FileTensor] | None) -> Component:
    if tensors is None:
        return component
    stored = sum_stored(("other", tensor.format, tensor.elements, tensor.bytes) for tensor in tensors)
    return component.evolve(stored=stored)
