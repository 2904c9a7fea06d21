"""Weight formats that each training method and inference program allows, and the programs' names for them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from planner.dtypes import AS_STORED, GGUF_FILE_TYPES, SCHEMES
from planner.models.architecture import Architecture
from planner.workload.choices import Compute, Method
from planner.workload.software.registry import (
    DEFAULT,
    SERVERS,
    SOFTWARE,
    serving_support,
    setting_owner,
    training_support,
)

_PARAMETERS: Final[dict[Compute, tuple[str, ...]]] = {
    "fp32": ("fp32",),
    "tf32": ("fp32",),
    "bf16": ("bf16",),
    "fp16": ("fp16",),
    "amp-bf16": ("fp32", "bf16"),
    "amp-fp16": ("fp32",),
    "fp8": ("fp32", "bf16"),
}
"""Formats of trained parameters, by compute precision."""

_FROZEN: Final[dict[Compute, tuple[str, ...]]] = _PARAMETERS | {"amp-fp16": ("fp32", "fp16")}
"""Plain formats of a frozen base model, by compute precision."""

BASE_FORMATS: Final[dict[Method, tuple[str, ...]]] = {
    "full": ("fp32", "bf16", "fp16"),
    "lora": ("fp32", "bf16", "fp16", "int8"),
    "qlora": ("nf4", "nf4-dq"),
}
"""Formats of the base model's parameters, by training method."""


def product_format(compute: Compute) -> str:
    """Return the output format of matrix products; with fp8 inputs it is bf16."""
    return "bf16" if compute == "fp8" else compute.removeprefix("amp-")


def autocasts(compute: Compute) -> bool:
    """Return whether a compute precision runs operations on fp32 parameters in 16 bits or fewer."""
    return compute == "fp8" or compute.startswith("amp-")


def formats_for(method: Method, compute: Compute, profile: str = DEFAULT) -> tuple[str, ...]:
    """Return the weight formats of the base model that a training method and compute precision allow."""
    plain = plain_formats(method, compute)
    quantised = compute in training_support(profile).quantised_compute
    return tuple(name for name in BASE_FORMATS[method] if (name in plain if is_plain(name) else quantised))


def plain_formats(method: Method, compute: Compute) -> tuple[str, ...]:
    """Return the unquantized weight formats of the base model that a method and compute precision allow."""
    return (_PARAMETERS if method == "full" else _FROZEN)[compute]


def is_plain(name: str) -> bool:
    """Return whether the weight format `name` is a plain number format rather than a quantization."""
    return SCHEMES[name].family == "plain"


DEFAULT_GGUF: Final = "Q4_K_M"
"""GGUF format that switching to llama.cpp chooses for a model without GGUF files."""
EXCLUSIVE_FIELDS: Final = tuple(name for one in SERVERS for name in serving_support(one).own_fields)
"""Workload fields that only one inference program uses."""

_GGUF_NAMES: Final = {"fp32": "F32", "fp16": "F16", "bf16": "BF16"}
_GGUF_NAMES_OF_EXPERTS: Final = {**_GGUF_NAMES, "mxfp4": "MXFP4_MOE"}
_PLAIN_NAMES: Final = {gguf: plain for plain, gguf in _GGUF_NAMES.items()}


def default_profile(
    settings: Iterable[str], own: Sequence[object], weights: str | None, architecture: Architecture
) -> str:
    """Return the default inference program: the owner of the workload's settings, else one that reads `weights`.

    `own` are the values of `EXCLUSIVE_FIELDS`.
    """
    owners = [owner.name for name in settings if (owner := setting_owner(name))]
    set_fields = [name for name, value in zip(EXCLUSIVE_FIELDS, own, strict=True) if value is not None]
    container = "gguf" if _is_gguf(_stored_format(weights, architecture), architecture) else "safetensors"
    owners += [name for name in SERVERS if set(set_fields) & set(serving_support(name).own_fields)]
    return next(iter(owners), next(name for name in SERVERS if serving_support(name).containers[0] == container))


class Incompatibility(NamedTuple):
    """Reason why a program cannot run weight files, and a hint; both empty if it can."""

    reason: str = ""
    hint: str = ""


def incompatibility(profile: str, weights: str | None, architecture: Architecture) -> Incompatibility:
    """Return why `profile` cannot run weight files in the format `weights`."""
    if architecture.kind == "diffusion":
        return Incompatibility()
    containers, stored = serving_support(profile).containers, _format_to_run(profile, weights, architecture)
    formats = serving_support(profile).weight_formats
    title = "the formats of these files" if stored == AS_STORED else SCHEMES[stored].title
    if formats and stored not in formats:
        hint = f"Choose {' or '.join(SCHEMES[name].title for name in formats)}, or another profile."
        return Incompatibility(f"{SOFTWARE[profile].title} does not run {title}", hint)
    is_gguf = _is_gguf(stored, architecture)
    if "safetensors" not in containers and not is_gguf and stored not in _gguf_names(architecture):
        hint = f"Choose a GGUF format: {', '.join(GGUF_FILE_TYPES)}."
        return Incompatibility(f"{SOFTWARE[profile].title} runs GGUF files, not {title}", hint)
    if "gguf" not in containers and is_gguf and (stored not in _PLAIN_NAMES or architecture.container == "gguf"):
        hint = "Choose the profile llama.cpp, or plain weights."
        return Incompatibility("transformers converts GGUF files to plain tensors when loading them", hint)
    return Incompatibility()


def loaded_format(profile: str, weights: str | None, architecture: Architecture, compute: str) -> str:
    """Return the format in which `profile` holds the weights: `weights`, else the checkpoint's, narrowed to 16 bits."""
    stored = _format_to_run(profile, weights, architecture)
    narrows = weights in (None, AS_STORED) and stored == "fp32" and serving_support(profile).narrows_fp32
    return compute if narrows else stored


def loading_notes(profile: str, weights: str | None, loaded: str, architecture: Architecture) -> tuple[str, ...]:
    """Return a note if weights as stored are an assumption, quantized or FP32, which `profile` holds as `loaded`.

    Of a program that cannot run the model's own format, the note says so.
    """
    if weights not in (None, AS_STORED) or architecture.kind == "diffusion":
        return ()
    formats = serving_support(profile).weight_formats
    if formats and _stored_format(weights, architecture) not in formats:
        return (f"{SOFTWARE[profile].title} runs weights in {SCHEMES[loaded].title}: convert the checkpoint first.",)
    if not architecture.states_format:
        assumed = f"{SCHEMES[architecture.stored_as].title} is assumed. Set the weight format if it differs."
        return (f"The number format of the stored weights is not known: {assumed}",)
    if architecture.quantization is not None and architecture.container is None:
        return (f"The weights are stored in {SCHEMES[architecture.quantization].title}.",)
    if architecture.stored_as != "fp32":
        return ()
    title = SOFTWARE[profile].title
    if loaded in ("fp32", _GGUF_NAMES["fp32"]):
        return (f"The weights are stored in FP32, and {title} keeps them so; as bf16 they take half the memory.",)
    return (f"The weights are stored in FP32; {title} loads them in 16 bits.",)


def native_format_name(profile: str, weights: str, architecture: Architecture) -> str:
    """Return the name that `profile` uses for the format `weights`; GGUF has its own names for some formats."""
    containers = serving_support(profile).containers
    if "safetensors" not in containers and not _is_gguf(weights, architecture):
        return _gguf_names(architecture)[weights]
    if "gguf" not in containers and _is_gguf(weights, architecture):
        return _PLAIN_NAMES[weights]
    return weights


def _gguf_names(architecture: Architecture) -> Mapping[str, str]:
    """Return the GGUF names of plain formats, and of MXFP4 for a network with experts, which alone are stored in it."""
    return _GGUF_NAMES if architecture.active_parameters == architecture.parameters else _GGUF_NAMES_OF_EXPERTS


def _stored_format(weights: str | None, architecture: Architecture) -> str:
    """Return the format of the weight files: `weights`, or the model's own format if unset."""
    return architecture.stored_as if weights is None or weights == AS_STORED else weights


def _format_to_run(profile: str, weights: str | None, architecture: Architecture) -> str:
    """Return the format of the weight files: if unset, the usual one of a program that cannot run the model's own."""
    stored, formats = _stored_format(weights, architecture), serving_support(profile).weight_formats
    return formats[0] if weights is None and formats and stored not in formats else stored


def _is_gguf(weights: str, architecture: Architecture) -> bool:
    return architecture.container == "gguf" if weights == AS_STORED else weights in GGUF_FILE_TYPES
