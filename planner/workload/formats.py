"""Parameter formats that each training method and compute precision allow."""

from typing import Final

from planner.dtypes import SCHEMES
from planner.workload.choices import Compute, Method
from planner.workload.software.registry import DEFAULT, training_support

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
