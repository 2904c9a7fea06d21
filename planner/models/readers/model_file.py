"""Read a network from whatever a person has of it: its configuration, its weights' headers, or a folder of both."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from planner.errors import TRACE_OWN, ModelFileError
from planner.models.architecture import Architecture
from planner.models.readers.adapter import ADAPTER_FILE, read_adapter
from planner.models.readers.checkpoint.shards import INDEX, SINGLE, numbered_parts, read_checkpoint
from planner.models.readers.checkpoint.stored import with_stored
from planner.models.readers.checkpoint.tensor_names import NAMES_NOTE, config_of_names
from planner.models.readers.config_json import read_config, read_config_fields, read_config_file
from planner.models.readers.diffusers.files import MODEL_INDEX, read_pipeline_folder
from planner.models.readers.gguf.model import read_gguf_config, read_gguf_model

PICKLES: Final = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
WEIGHTS: Final = (".safetensors", ".gguf")
_CONFIG: Final = "config.json"
_INDEX_ENDING: Final = ".safetensors.index.json"
_MAX_LISTED: Final = 10_000


def read_model_file(path: Path) -> Architecture:
    """Return the network in a config.json, a safetensors file or index, a GGUF file, or a folder that holds some.

    A configuration says what the network is, the headers of the weights beside it what it takes as stored.

    Raises:
        ModelFileError: If it cannot be read, is not what it claims to be, or does not say what network it is.
    """
    if os.path.isdir(path):
        return _read_folder(path)
    if path.name == MODEL_INDEX:
        return read_pipeline_folder(path.parent)
    reader = _READERS.get(path.suffix.lower())
    if path.suffix.lower() in PICKLES:
        raise pickled(path)
    if path.name.endswith(_INDEX_ENDING):
        reader = _read_safetensors
    return read_config_file(path) if reader is None else reader(path)


def read_model_config(path: Path) -> Mapping[str, object]:
    """Return the configuration of the network in a file or folder, as it is written or as the weights' head has it.

    Raises:
        ModelFileError: If it cannot be read, or does not say what network it is.
    """
    if os.path.isdir(path):
        weights = None if os.path.lexists(path / _CONFIG) else _weights(path)
        return read_config_fields(path) if weights is None else read_model_config(weights)
    ending = path.suffix.lower()
    if ending in PICKLES:
        raise pickled(path)
    if ending == ".gguf":
        return read_gguf_config(path)
    if ending != ".safetensors" and not path.name.endswith(_INDEX_ENDING):
        return read_config_fields(path)
    config = path.with_name(_CONFIG)
    return (
        read_config_fields(config) if os.path.isfile(config) else config_of_names(read_checkpoint(path).tensors, path)
    )


def pickled(path: Path | str) -> ModelFileError:
    """Return the error about a file that runs code when it is opened."""
    return ModelFileError(
        path,
        "is a pickle, which can run any code when it is opened, and is never opened here",
        "Convert it with safetensors.torch.save_file, or choose the model's config.json. The trace needs no weights: "
        f"for the module that they are for, use {TRACE_OWN}.",
    )


def _read_safetensors(path: Path) -> Architecture:
    checkpoint = read_checkpoint(path)
    config = path.with_name(_CONFIG)
    if os.path.isfile(config):
        return with_stored(read_config_file(config), checkpoint.tensors, checkpoint.notes)
    made = read_config(config_of_names(checkpoint.tensors, path), str(path))
    return with_stored(made, checkpoint.tensors, (*checkpoint.notes, NAMES_NOTE))


def _read_folder(folder: Path) -> Architecture:
    if os.path.lexists(folder / ADAPTER_FILE) and not os.path.lexists(folder / _CONFIG):
        base = read_adapter(folder).base or "a model that it does not name"
        raise ModelFileError(
            folder,
            f"holds a LoRA adapter of {base[:200]}",
            "Choose the model that it was made for, or estimate its training: gpu-planner fit FOLDER.",
        )
    if os.path.lexists(folder / MODEL_INDEX):
        return read_pipeline_folder(folder)
    weights = _weights(folder)
    if weights is not None:
        return read_model_file(weights)
    if os.path.lexists(folder / _CONFIG):
        return read_config_file(folder)
    pickles = [name for name in _names(folder) if name.lower().endswith(PICKLES)]
    if pickles:
        raise pickled(folder / pickles[0])
    raise ModelFileError(
        folder, "is a folder without a config.json or weights", "Choose the folder of a model, or its config.json."
    )


def _weights(folder: Path) -> Path | None:
    """Return the weights in a folder: its index, its only safetensors file, or its only GGUF file."""
    for name in (INDEX, SINGLE):
        if os.path.lexists(folder / name):
            return folder / name
    names = _names(folder)
    for suffix in WEIGHTS:
        found = [folder / name for name in names if name.lower().endswith(suffix)]
        models = {numbered_parts(path) for path in found}
        if len(models) == 1:
            return found[0]
        if models and not (suffix == ".safetensors" and _CONFIG in names):
            listed = ", ".join(sorted(path.name for path in found)[:3])
            raise ModelFileError(folder, f"holds {len(models)} models: {listed}, …", "Choose one of the files.")
    return None


def _names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for _, entry in zip(range(_MAX_LISTED), entries, strict=False))
    except OSError as error:
        raise ModelFileError(folder, f"cannot be read: {error.strerror}", "Check that you may read it.") from error


_READERS: Final[Mapping[str, Callable[[Path], Architecture]]] = {
    ".safetensors": _read_safetensors,
    ".gguf": read_gguf_model,
}
