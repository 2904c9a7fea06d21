"""Reader of a pipeline's files: `model_index.json`, and the configurations and weights of its components."""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from planner.errors import ModelFileError
from planner.models.architecture import Architecture
from planner.models.diffusion import Component
from planner.models.readers.checkpoint.safetensors import FileTensor, read_checkpoint
from planner.models.readers.checkpoint.stored import sum_stored
from planner.models.readers.config_fields import ConfigFields
from planner.models.readers.config_json import MAX_FILE_BYTES, parse_config, read_config
from planner.models.readers.diffusers.pipeline import MOST_COMPONENTS, PIPELINE
from planner.models.readers.sources import read_whole

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
