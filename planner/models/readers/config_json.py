"""Reader of Hugging Face `config.json` files, which are untrusted input."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from planner.dtypes import SCHEMES
from planner.errors import TRACE_INSTRUCTIONS, ModelFileError, NoFormulaError
from planner.models.architecture import Architecture
from planner.models.readers.config_fields import MAX_LAYERS, ConfigFields
from planner.models.readers.registry import find_reader, read_fields, traceable_name
from planner.models.readers.sources import read_whole, unreadable_file_error
from planner.parsing import parse_json
from planner.storage import UnreadableFileError

MAX_FILE_BYTES: Final = 8 * 2**20
MAX_PARAMETERS: Final = 10**15

_BARE: Final = re.compile(r"(?<!LMHead)Model$")
"""Class names of transformers' base models, which have no head."""
_NO_TYPE: Final = (
    "The config.json of a Hugging Face model has a model_type. A network of another library can be traced: write "
    f"a function that returns it with its inputs, then use {TRACE_INSTRUCTIONS}."
)
_COMPONENT: Final = "It belongs to a component of a diffusion pipeline: choose the folder with the model_index.json."
_LANGUAGE_PARTS: Final = ("text_config", "llm_config", "language_config")


def read_config_file(path: Path) -> Architecture:
    """Read the architecture from a `config.json` or a folder that contains one.

    Raises:
        ModelFileError: If the file cannot be read, is too large, is not JSON, or describes an unsupported network.
    """
    file = _config_path(path)
    return read_config(read_config_fields(file), str(file))


def read_config_fields(path: Path) -> Mapping[str, object]:
    """Read the raw fields of a `config.json`; `path` is the file or its folder.

    Raises:
        ModelFileError: If the file cannot be read, is too large or is no JSON object.
    """
    file = _config_path(path)
    return parse_config(read_whole(file, MAX_FILE_BYTES, "config.json"), str(file))


def read_config(config: Mapping[str, object], source: str) -> Architecture:
    """Return the architecture that a configuration describes; `source` names the file in errors.

    Raises:
        ModelFileError: If a field is missing, of the wrong type or out of bounds, or the `model_type` is unknown.
    """
    fields = ConfigFields(config, source)
    component = _supported_component(fields)
    found = read_fields(component)
    _check_is_whole(fields, found)
    if found.parameters > MAX_PARAMETERS:
        raise ModelFileError(
            source,
            f"describes {found.parameters:.3g} parameters, more than {MAX_PARAMETERS:.0e}",
            "Check its sizes; no network of this size exists.",
        )
    scheme = quantization_scheme(fields)
    language = component.nested(*_LANGUAGE_PARTS) or component
    if found.kind == "decoder" and _BARE.search((fields.texts("architectures") or ("",))[0]):
        # Embedding models are loaded without the head and pool the last hidden states.
        found = found.evolve(head=(), tied_head=False)
    return found.evolve(
        stored_dtype=stored_dtype(fields) or found.stored_dtype,
        quantization=scheme,
        # Checkpoints in MXFP4 keep their attention in 16 bits: only experts have kernels for it.
        further_layers=language.integer(
            "num_nextn_predict_layers", "mtp_num_hidden_layers", default=0, low=0, high=MAX_LAYERS
        ),
        quantized_roles=("expert",) if scheme == "mxfp4" else found.quantized_roles,
        reader_notes=(*found.reader_notes, *fields.notes),
    )


def _check_is_whole(fields: ConfigFields, found: Architecture) -> None:
    """Raise an error if the configuration names the decoder of an encoder-decoder alone, such as `BartForCausalLM`."""
    named = (fields.texts("architectures") or ("",))[0]
    if found.kind == "encoder-decoder" and named.endswith("ForCausalLM"):
        raise NoFormulaError(
            fields.source, f"{named[:60]} is the decoder of an encoder-decoder alone", traceable_name(fields)
        )


def _supported_component(fields: ConfigFields) -> ConfigFields:
    """Return the fields of the component that can be read, such as the text model of a composite model."""
    if not fields.has("model_type"):
        if not fields.has(*_LANGUAGE_PARTS):
            fields.fail("model_type", "is missing", _COMPONENT if fields.has("_class_name") else _NO_TYPE)
    elif find_reader(fields.model_type) is not None:
        return fields
    inner = fields.nested(*_LANGUAGE_PARTS)
    if inner is None or not inner.has("model_type"):
        return fields
    fields.note(
        f"only the language part ({inner.model_type}) was read; the other parts are not counted (a trace counts them)"
    )
    return inner


def _config_path(path: Path) -> Path:
    try:
        if not path.is_dir():
            return path
        file = path / "config.json"
        if file.is_file():
            return file
    except (OSError, ValueError) as error:
        raise unreadable_file_error(path, error) from error
    raise ModelFileError(path, "is a folder without a config.json", "Choose the folder of a model, or its config.json.")


def parse_config(data: bytes, file: str) -> Mapping[str, object]:
    """Parse a configuration into a JSON object; `file` names it in errors.

    Raises:
        ModelFileError: If it is not text, not JSON, or no object.
    """
    hint = "Choose the model's config.json; Hugging Face repositories hold one beside the weights."
    try:
        # Published Mamba-2 files bound their time steps by Infinity; fields check the bounds of what they read.
        config = parse_json(data, allow_infinity=True)
    except UnreadableFileError as error:
        raise ModelFileError(file, error.reason, hint) from error
    if not isinstance(config, dict):
        raise ModelFileError(file, f"holds a JSON {type(config).__name__}, not an object", hint)
    return config


_DTYPES: Final = {
    "float32": "fp32",
    "float": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
}


def stored_dtype(fields: ConfigFields) -> str | None:
    """Return the number format of the weights that the configuration or its part on text states, or None."""
    if not fields.has("torch_dtype", "dtype"):
        text = fields.nested("text_config")
        return stored_dtype(text) if text is not None else None
    stated = fields.text("torch_dtype", "dtype").removeprefix("torch.")
    known = _DTYPES.get(stated)
    if known is None and stated != "auto":
        fields.note(f"the stored format {stated[:40]!r} is unknown and was ignored")
    return known


def quantization_scheme(fields: ConfigFields) -> str | None:
    """Return the quantization scheme of the checkpoint, or None if it is not quantized or the scheme is unknown.

    **Source**: the quantisation configurations of transformers, `utils/quantization_config.py`.
    """
    settings = fields.nested("quantization_config")
    if settings is None:
        return None
    unnamed = (
        "bitsandbytes" if settings.has("load_in_4bit") else "modelopt" if settings.has("quant_algo") else "unknown"
    )
    method = settings.text("quant_method", default=unnamed)
    scheme = _METHODS[method](settings) if method in _METHODS else None
    if scheme is None:
        fields.note(
            f"the checkpoint's quantization ({method[:40]}) is not supported; its weights count as not quantized"
        )
    return scheme


def _bitsandbytes_scheme(settings: ConfigFields) -> str | None:
    if settings.flag("load_in_8bit", "_load_in_8bit", default=False):
        return "int8"
    if settings.text("bnb_4bit_quant_type", default="fp4") != "nf4":
        return None
    return "nf4-dq" if settings.flag("bnb_4bit_use_double_quant", default=False) else "nf4"


def _group_scheme_reader(family: str) -> Callable[[ConfigFields], str | None]:
    def read(settings: ConfigFields) -> str | None:
        bits = settings.integer("bits", "w_bit", default=4, high=16)
        group = settings.integer("group_size", "q_group_size", default=128, low=-1)
        return _known_scheme(f"{family}{bits}-{group}")

    return read


def _float8_scheme(settings: ConfigFields) -> str | None:
    blocks = settings.integers("weight_block_size")
    return "fp8" if blocks is None else _known_scheme(f"fp8-block{blocks[0]}") if len(set(blocks)) == 1 else None


def _known_scheme(scheme: str) -> str | None:
    """Return `scheme`, or None if no such quantization scheme is known."""
    return scheme if scheme in SCHEMES else None


def _compressed_tensors_scheme(settings: ConfigFields) -> str | None:
    return {"float-quantized": "fp8", "int-quantized": "int8", "nvfp4-pack-quantized": "nvfp4"}.get(
        settings.text("format", default="")
    )


def _modelopt_scheme(settings: ConfigFields) -> str | None:
    """Return the scheme of a checkpoint that NVIDIA's Model Optimizer wrote, or None if it leaves attention alone."""
    if any("attn" in each for each in settings.texts("ignore") or ()):
        return None
    return {"NVFP4": "nvfp4", "FP8": "fp8"}.get(settings.text("quant_algo", default=""))


_METHODS: Final[Mapping[str, Callable[[ConfigFields], str | None]]] = {
    "bitsandbytes": _bitsandbytes_scheme,
    "gptq": _group_scheme_reader("gptq"),
    "awq": _group_scheme_reader("awq"),
    "fp8": _float8_scheme,
    "fbgemm_fp8": lambda _: "fp8",
    "mxfp4": lambda _: "mxfp4",
    "compressed-tensors": _compressed_tensors_scheme,
    "modelopt": _modelopt_scheme,
}
