"""Read an architecture from a Hugging Face `config.json`, which may be anything but what it claims to be."""

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from planner.errors import TRACE_OWN, ModelFileError
from planner.models.architecture import Architecture
from planner.models.readers.fields import Fields
from planner.models.readers.quantization import quantization_scheme, stored_dtype
from planner.models.readers.registry import read_fields, reader_of
from planner.models.readers.sources import read_whole, unreadable

MAX_FILE_BYTES: Final = 8 * 2**20
MAX_PARAMETERS: Final = 10**15

_BARE: Final = re.compile(r"(?<!LMHead)Model$")
"""How the classes of transformers are called that end with the last layer."""
_NO_TYPE: Final = (
    "A config.json of a Hugging Face model names its model_type. A network of another library goes to the trace: write "
    f"a function that returns it with its inputs, then use {TRACE_OWN}."
)
_COMPONENT: Final = "It belongs to a component of a diffusion pipeline: choose the folder with the model_index.json."
_LANGUAGE_PARTS: Final = ("text_config", "llm_config", "language_config")


def read_config_file(path: Path) -> Architecture:
    """Return the architecture that a `config.json`, or a folder that holds one, describes.

    Raises:
        ModelFileError: If the file cannot be read, is too large, is not JSON, or describes nothing that is supported.
    """
    file = _config_file(path)
    return read_config(read_config_fields(file), str(file))


def read_config_fields(path: Path) -> Mapping[str, object]:
    """Return what is written in a `config.json`, or in that of a folder.

    Raises:
        ModelFileError: If the file cannot be read, is too large or is no JSON object.
    """
    file = _config_file(path)
    return parse_config(read_whole(file, MAX_FILE_BYTES, "config.json"), str(file))


def read_config(config: Mapping[str, object], source: str) -> Architecture:
    """Return the architecture that a configuration describes; `source` names it in errors.

    Raises:
        ModelFileError: If a field is missing, of the wrong type or out of bounds, or the `model_type` is unknown.
    """
    fields = Fields(config, source)
    found = read_fields(_supported_part(fields))
    if found.parameters > MAX_PARAMETERS:
        raise ModelFileError(
            source,
            f"describes {found.parameters:.3g} parameters, more than {MAX_PARAMETERS:.0e}",
            "Check its sizes; no network of this size exists.",
        )
    scheme = quantization_scheme(fields)
    if found.kind == "decoder" and _BARE.search((fields.texts("architectures") or ("",))[0]):
        # Embedding models are loaded without the head, and pool the last layer's states.
        found = found.evolve(head=(), tied_head=False)
    return found.evolve(
        stored_dtype=stored_dtype(fields) or found.stored_dtype,
        quantization=scheme,
        # Checkpoints in MXFP4 keep their attention in 16 bits: only experts have kernels for it.
        quantized_roles=("expert",) if scheme == "mxfp4" else found.quantized_roles,
        reader_notes=(*found.reader_notes, *fields.notes),
    )


def _supported_part(fields: Fields) -> Fields:
    if not fields.has("model_type"):
        if not fields.has(*_LANGUAGE_PARTS):
            fields.fail("model_type", "is missing", _COMPONENT if fields.has("_class_name") else _NO_TYPE)
    elif reader_of(fields.model_type) is not None:
        return fields
    inner = fields.nested(*_LANGUAGE_PARTS)
    if inner is None or not inner.has("model_type"):
        return fields
    fields.note(f"only the language part ({inner.model_type}) was read; the other parts are not counted")
    return inner


def _config_file(path: Path) -> Path:
    try:
        if not path.is_dir():
            return path
        file = path / "config.json"
        if file.is_file():
            return file
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    raise ModelFileError(path, "is a folder without a config.json", "Choose the folder of a model, or its config.json.")


def parse_config(data: bytes, file: str) -> Mapping[str, object]:
    """Return the JSON object that a configuration is; `file` names it in errors.

    Raises:
        ModelFileError: If it is not text, not JSON, or no object.
    """
    hint = "Choose the model's config.json; Hugging Face repositories hold one beside the weights."
    try:
        config = json.loads(data.decode("utf-8-sig"), parse_constant=_constant)
    except UnicodeDecodeError as error:
        raise ModelFileError(file, "is not text in UTF-8", hint) from error
    except RecursionError as error:
        raise ModelFileError(file, "is nested too deep", hint) from error
    except json.JSONDecodeError as error:
        raise ModelFileError(file, f"is not JSON: {error.msg} in line {error.lineno}", hint) from error
    except ValueError as error:
        raise ModelFileError(file, f"is not JSON: {error}", hint) from error
    if not isinstance(config, dict):
        raise ModelFileError(file, f"holds a JSON {type(config).__name__}, not an object", hint)
    return config


def _constant(name: str) -> float:
    # Published Mamba-2 files bound their time steps by Infinity; fields check the bounds of what they read.
    if name != "Infinity":
        raise ValueError(f"{name} is not a number")
    return math.inf
