"""The formats in which parameters can be kept, by the method and by how they are computed."""

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
"""The formats that trained parameters can be kept in for each way to compute."""

_FROZEN: Final[dict[Compute, tuple[str, ...]]] = _PARAMETERS | {"amp-fp16": ("fp32", "fp16")}
"""The plain formats that the frozen network under adapters can be kept in for each way to compute."""

BASE_FORMATS: Final[dict[Method, tuple[str, ...]]] = {
    "full": ("fp32", "bf16", "fp16"),
    "lora": ("fp32", "bf16", "fp16", "int8"),
    "qlora": ("nf4", "nf4-dq"),
}
"""The formats that the network's own parameters can have under each method."""


def arithmetic(compute: Compute) -> str:
    """Return the format that matrix products put out; under fp8, which they read in 8 bits, that is bf16."""
    return "bf16" if compute == "fp8" else compute.removeprefix("amp-")


def autocasts(compute: Compute) -> bool:
    """Return whether parameters in fp32 are computed in 16 bits, or fewer."""
    return compute == "fp8" or compute.startswith("amp-")


def formats_for(method: Method, compute: Compute, profile: str = DEFAULT) -> tuple[str, ...]:
    """Return the formats that the network's own parameters can have under `method`, computed so."""
    plain = plain_formats(method, compute)
    quantised = compute in training_support(profile).quantised_compute
    return tuple(name for name in BASE_FORMATS[method] if (name in plain if is_plain(name) else quantised))


def plain_formats(method: Method, compute: Compute) -> tuple[str, ...]:
    """Return the formats without quantisation that go with a way to compute, trained or frozen under adapters."""
    return (_PARAMETERS if method == "full" else _FROZEN)[compute]


def is_plain(name: str) -> bool:
    """Return whether a format is a number format, and no quantisation."""
    return SCHEMES[name].family == "plain"
