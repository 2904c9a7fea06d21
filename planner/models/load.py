"""Find the network that a person names: in the catalog, or in a file of their own."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from planner.errors import ModelFileError, SpecError
from planner.models.architecture import Architecture
from planner.models.catalog import ModelCatalog, resolve_model

_USE_CONFIG: Final = "Give the model's config.json, or the folder that holds it."
_WEIGHT_FILES: Final = (".safetensors", ".gguf", ".bin", ".pt", ".pth")


class LoadedModel(NamedTuple):
    """A network, its name, and the file that it was read from unless it is in the catalog."""

    name: str
    architecture: Architecture
    path: Path | None


def load_model(text: str, catalog: ModelCatalog) -> LoadedModel:
    """Return the network that `text` names: an id or alias of the catalog, a `config.json`, or a folder that holds one.

    A name of the catalog wins over a file of the same name, unless `text` is written as a path.

    Raises:
        SpecError: If the catalog has no such name and there is no such file, or several models have the name.
        ModelFileError: If the file cannot be read as a configuration.
    """
    found = _find(text, catalog)
    return LoadedModel(found, catalog.model(found), None) if isinstance(found, str) else _from_file(found)


def load_config(text: str, catalog: ModelCatalog) -> tuple[str, Mapping[str, object]]:
    """Return the name of what `text` names, as `load_model` takes it, and its configuration as it is written.

    Its architecture need not be one that can be estimated.

    Raises:
        SpecError: As `load_model`.
        ModelFileError: If the file cannot be read, or is no JSON object.
    """
    found = _find(text, catalog)
    if isinstance(found, str):
        return found, catalog.record(found).config
    from planner.models.readers.config_json import read_config_fields

    return name_of_file(found) or str(found), read_config_fields(found)


def _find(text: str, catalog: ModelCatalog) -> str | Path:
    """Return the name in the catalog, or the file, that `text` means."""
    if text.startswith("hf:"):
        raise ModelFileError(text, "models are not fetched from the Hugging Face Hub yet", _USE_CONFIG)
    path = Path(text).expanduser()
    if path.suffix in _WEIGHT_FILES:
        raise ModelFileError(text, f"{path.suffix} files are not read yet", _USE_CONFIG)
    if _written_as_path(text):
        return path
    try:
        return resolve_model(catalog, text)
    except SpecError:
        # A link counts even where it leads nowhere, so that the error is about the file.
        if os.path.lexists(path):
            return path
        raise


def _written_as_path(text: str) -> bool:
    return text.endswith((".json", "/", "\\")) or text.startswith((".", "~")) or Path(text).is_absolute()


def _from_file(path: Path) -> LoadedModel:
    # Imported here: a model of the catalog that is only looked up needs no reader.
    from planner.models.readers.config_json import read_config_file

    architecture = read_config_file(path)
    return LoadedModel(name_of_file(path) or architecture.model_type, architecture, path)


def name_of_file(path: Path) -> str:
    """Return what to call the network in the file or folder `path`: its own name, or its folder's for a config.json."""
    if path.suffix == ".json" and path.name != "config.json":
        return path.stem
    return (path.parent if path.name == "config.json" else path).resolve().name
