"""Find the network that a person names: in the catalog, in a file of their own, or on the Hugging Face Hub."""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from planner.errors import SpecError
from planner.models.architecture import Architecture
from planner.models.catalog import ModelCatalog, resolve_model

HUB_PREFIX: Final = "hf:"
_COMMON_NAMES: Final = re.compile(r"(config|model_index)\.json|model(-\d{5}-of-\d{5})?\.safetensors(\.index\.json)?")
_PART: Final = re.compile(r"-\d{5}-of-\d{5}$")
_FILE_ENDINGS: Final = (".json", ".safetensors", ".gguf", ".bin", ".pt", ".pth", ".ckpt")


class LoadedModel(NamedTuple):
    """A network, its name, and where it was read from unless it is in the catalog: a file, or a name on the Hub."""

    name: str
    architecture: Architecture
    path: Path | str | None


def load_model(text: str, catalog: ModelCatalog) -> LoadedModel:
    """Return the network that `text` names.

    That is an id or alias of the catalog; a `config.json`, a safetensors or GGUF file, or a folder that holds some; or
    a model on the Hugging Face Hub, `hf:owner/name`. A name of the catalog wins over a file of the same name, unless
    `text` is written as a path.

    Raises:
        SpecError: If the catalog has no such name and there is no such file, or several models have the name.
        ModelFileError: If the file cannot be read, or the Hub has no such model.
        NetworkError: If the Hub cannot be reached.
    """
    if text.startswith(HUB_PREFIX):
        return load_hub_model(text)
    found = _find(text, catalog)
    return LoadedModel(found, catalog.model(found), None) if isinstance(found, str) else load_model_file(found)


def load_config(text: str, catalog: ModelCatalog) -> tuple[str, Mapping[str, object]]:
    """Return the name of what `text` names, as `load_model` takes it, and its configuration as it is written.

    Its architecture need not be one that can be estimated.

    Raises:
        SpecError: As `load_model`.
        ModelFileError: If the file cannot be read, or is no JSON object.
        NetworkError: As `load_model`.
    """
    if text.startswith(HUB_PREFIX):
        from planner.models.readers.hub.model import read_hub_config

        return text.removeprefix(HUB_PREFIX), read_hub_config(text)
    found = _find(text, catalog)
    if isinstance(found, str):
        return found, catalog.record(found).config
    from planner.models.readers.model_file import read_model_config

    return model_name_from_path(found) or str(found), read_model_config(found)


def load_hub_model(text: str, stop: Callable[[], bool] = lambda: False) -> LoadedModel:
    """Return the model `hf:owner/name` of the Hugging Face Hub; `stop` says whether nobody waits for it any more.

    Raises:
        ModelFileError: If the Hub has no such model.
        NetworkError: If the Hub cannot be reached.
    """
    from planner.models.readers.hub.model import read_hub_model

    return LoadedModel(text.removeprefix(HUB_PREFIX), read_hub_model(text, stop), text)


def load_model_file(path: Path) -> LoadedModel:
    """Return the network in a file or folder of one's own.

    Raises:
        ModelFileError: If it cannot be read.
    """
    # Imported here: a model of the catalog that is only looked up needs no reader.
    from planner.models.readers.model_file import read_model_file

    architecture = read_model_file(path)
    return LoadedModel(model_name_from_path(path) or architecture.model_type, architecture, path)


def _find(text: str, catalog: ModelCatalog) -> str | Path:
    """Return the name in the catalog, or the file, that `text` means."""
    path = Path(text).expanduser()
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
    return text.endswith((*_FILE_ENDINGS, "/", "\\")) or text.startswith((".", "~")) or Path(text).is_absolute()


def model_name_from_path(path: Path) -> str:
    """Return what to call the network in the file or folder `path`.

    That is its own name, or its folder's where the file is called as every model's is.
    """
    if _COMMON_NAMES.fullmatch(path.name):
        return path.absolute().parent.resolve().name
    return _PART.sub("", path.stem) if path.suffix in _FILE_ENDINGS else path.resolve().name
