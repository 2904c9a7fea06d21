"""Loading of a model by name: from the catalog, a local file or folder, or the Hugging Face Hub."""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from planner.errors import NoFormulaError, SpecError
from planner.models.architecture import Architecture
from planner.models.catalog import ModelCatalog, resolve_model

HUB_PREFIX: Final = "hf:"
_COMMON_NAMES: Final = r"(config|model_index)\.json|model(-\d{5}-of-\d{5})?\.safetensors(\.index\.json)?"
_PART: Final = r"-\d{5}-of-\d{5}$"
_FILE_ENDINGS: Final = (".json", ".safetensors", ".gguf", ".bin", ".pt", ".pth", ".ckpt")


class LoadedModel(NamedTuple):
    """A loaded architecture with its name, and the file or Hub name that it was read from (None for the catalog)."""

    name: str
    architecture: Architecture
    path: Path | str | None


def load_model(text: str, catalog: ModelCatalog) -> LoadedModel:
    """Load the model `text`: a catalog name, a path, or a name on the Hugging Face Hub.

    `text` is an id or alias of the catalog; the path of a `config.json`, a safetensors or GGUF file, or a folder with
    some; or a model on the Hugging Face Hub, `hf:owner/name`. A name of the catalog takes precedence over a file of the
    same name, unless `text` is written as a path.

    Raises:
        SpecError: If the catalog has no such name and there is no such file, or several models have the name.
        ModelFileError: If the file cannot be read, the Hub has no such model, or it has no formula.
        NetworkError: If the Hub cannot be reached.
    """
    if text.startswith(HUB_PREFIX):
        return load_hub_model(text)
    found = _find_model(text, catalog)
    return LoadedModel(found, catalog.model(found), None) if isinstance(found, str) else load_model_file(found)


def load_config(text: str, catalog: ModelCatalog) -> tuple[str, Mapping[str, object]]:
    """Return the name and the raw configuration of the model `text`: a catalog name, path or Hub name.

    Its architecture need not be supported by the estimator.

    Raises:
        SpecError: As `load_model`.
        ModelFileError: If the file cannot be read, or is no JSON object.
        NetworkError: As `load_model`.
    """
    if text.startswith(HUB_PREFIX):
        from planner.models.readers.hub import read_hub_config

        return text.removeprefix(HUB_PREFIX), read_hub_config(text)
    try:
        found = _find_model(text, catalog)
    except NoFormulaError as error:
        (model,) = catalog.without_formula(error.traceable)
        return model.id, model.config or {}
    if isinstance(found, str):
        return found, catalog.record(found).config
    from planner.models.readers.model_file import read_model_config

    return model_name_from_path(found) or str(found), read_model_config(found)


def load_hub_model(text: str, stop: Callable[[], bool] = lambda: False) -> LoadedModel:
    """Load the model `hf:owner/name` from the Hugging Face Hub; `stop` returns true to cancel.

    Raises:
        ModelFileError: If the Hub has no such model.
        NetworkError: If the Hub cannot be reached.
    """
    from planner.models.readers.hub import read_hub_model

    return LoadedModel(text.removeprefix(HUB_PREFIX), read_hub_model(text, stop), text)


def load_model_file(path: Path) -> LoadedModel:
    """Load the model in the local file or folder `path`.

    Raises:
        ModelFileError: If it cannot be read.
    """
    # Imported here because a lookup in the catalog needs no reader.
    from planner.models.readers.model_file import read_model_file

    architecture = read_model_file(path)
    return LoadedModel(model_name_from_path(path) or architecture.model_type, architecture, path)


def _find_model(text: str, catalog: ModelCatalog) -> str | Path:
    if not text.strip():
        raise SpecError("model", "no model is named", "Name one, such as meta-llama/Llama-3.1-8B, or a file or folder.")
    path = Path(os.path.expanduser(text))  # which keeps the ~ of a user who does not exist
    if _is_written_as_path(text):
        return path
    try:
        return resolve_model(catalog, text)
    except SpecError:
        # A broken link counts as a path, so that the error is about the file.
        if os.path.lexists(path):
            return path
        raise


def _is_written_as_path(text: str) -> bool:
    return text.endswith((*_FILE_ENDINGS, "/", "\\")) or text.startswith((".", "~")) or Path(text).is_absolute()


def model_name_from_path(path: Path) -> str:
    """Return a display name for the model in the file or folder `path`.

    That is the file's name, or its folder's if the file has a generic name such as config.json.
    """
    if re.fullmatch(_COMMON_NAMES, path.name):
        return path.absolute().parent.resolve().name
    return re.sub(_PART, "", path.stem) if path.suffix in _FILE_ENDINGS else path.resolve().name
