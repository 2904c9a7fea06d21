"""Software support of accelerators: number formats, kernels, framework versions.

A fact applies to a target of software builds (a compute capability, an AMD target or an architecture) and so
to every card of that target.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple

from pydantic import Field

from planner.base import Spec
from planner.hardware.gpu import Gpu

Feature = Literal[
    "bf16", "fp8", "fp4", "flash-attention-2", "flash-attention-3", "marlin", "mig",
    "cuda", "driver", "pytorch", "tensorflow", "jax", "rocm", "fp64", "tf32", "fp16", "int8",
]  # fmt: skip
Support = Literal["yes", "partly", "no"]

FEATURES: Final[dict[Feature, str]] = {
    "bf16": "BF16 arithmetic",
    "fp8": "FP8 arithmetic",
    "fp4": "FP4 arithmetic",
    "flash-attention-2": "FlashAttention 2",
    "flash-attention-3": "FlashAttention 3",
    "marlin": "Marlin kernels (vLLM)",
    "mig": "MIG",
    "cuda": "CUDA toolkit",
    "driver": "NVIDIA driver",
    "pytorch": "PyTorch",
    "tensorflow": "TensorFlow",
    "jax": "JAX",
    "rocm": "ROCm",
}
"""The displayed software features in order, with titles; other number formats are shown only if unsupported."""
_FORMATS: Final[frozenset[Feature]] = frozenset(("fp64", "tf32", "fp16", "bf16", "fp8", "int8", "fp4"))
_ONLY_NVIDIA: Final[frozenset[Feature]] = frozenset(("marlin", "mig", "cuda", "driver", "flash-attention-3"))
_NOT_READ: Final = "none of the sources states the support for this GPU"
_HAS_RATE: Final = "a rate is published for this format"


class SoftwareFact(Spec):
    """Support of a software feature on some build targets, according to one source.

    `targets` are as `software_target` returns them. `oldest` and `newest` are the first and the last supported version;
    None if the range is open, or if the note explains why the version is unknown.
    """

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    feature: Feature
    targets: tuple[str, ...] = Field(min_length=1)
    support: Support
    oldest: str | None = Field(default=None, min_length=1)
    newest: str | None = Field(default=None, min_length=1)
    note: str | None = Field(default=None, min_length=3)
    source: str = Field(min_length=3)
    as_of: str = Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", description="day on which the source was read")


class FeatureSupport(NamedTuple):
    """Support of a software feature on one card; `support` is None if unknown, for the stated `reason`."""

    feature: Feature
    support: Support | None
    oldest: str | None = None
    newest: str | None = None
    reason: str = ""
    source: str = ""
    as_of: str = ""

    @property
    def title(self) -> str:
        """Return the display title of the feature."""
        return FEATURES[self.feature]

    @property
    def versions(self) -> str:
        """Return the supported versions as text: `from 9.0 to 12.x`, `to 2.14`, or an empty text."""
        parts = (f"from {self.oldest}" if self.oldest else "", f"to {self.newest}" if self.newest else "")
        return " ".join(part for part in parts if part)


def software_target(gpu: Gpu) -> str:
    """Return the build target of software for `gpu`.

    That is a compute capability (8.9), an AMD target (gfx942), or else the architecture (TPU v5e).
    """
    return gpu.compute_capability or gpu.architecture


def software_of(gpu: Gpu, facts: Iterable[SoftwareFact]) -> tuple[FeatureSupport, ...]:
    """Return the support of every software feature that applies to `gpu`, in the order of `FEATURES`.

    CUDA features apply to NVIDIA GPUs only, ROCm to AMD GPUs only. A number format with a published rate counts as
    supported even without a fact.
    """
    target = software_target(gpu)
    known = {fact.feature: fact for fact in facts if target in fact.targets}
    return tuple(
        _feature_support(gpu, feature, known.get(feature)) for feature in FEATURES if _applies_to(gpu, feature)
    )


def unsupported_formats(facts: Iterable[SoftwareFact]) -> Mapping[str, Mapping[str, SoftwareFact]]:
    """Return the unsupported number formats by target, each with the fact that states the lack of support."""
    lacking: dict[str, dict[str, SoftwareFact]] = {}
    for fact in facts:
        if fact.feature in _FORMATS and fact.support == "no":
            for target in fact.targets:
                lacking.setdefault(target, {})[fact.feature] = fact
    return lacking


def _feature_support(gpu: Gpu, feature: Feature, fact: SoftwareFact | None) -> FeatureSupport:
    """Return the support of `feature` on `gpu` according to `fact`, None where no source states it."""
    if feature == "mig" and gpu.mig is not None:  # a property of the product, not of its chip
        provenance = gpu.provenance_of("mig")
        return FeatureSupport(feature, "yes" if gpu.mig else "no", source=provenance.source, as_of=provenance.as_of)
    if fact is not None:
        return FeatureSupport(feature, fact.support, fact.oldest, fact.newest, fact.note or "", fact.source, fact.as_of)
    provenance = gpu.provenance_of(f"rate.{feature}")
    if gpu.rate(feature) is None or provenance.basis == "derived":
        return FeatureSupport(feature, None, reason=_NOT_READ)
    return FeatureSupport(feature, "yes", reason=_HAS_RATE, source=provenance.source, as_of=provenance.as_of)


def _applies_to(gpu: Gpu, feature: Feature) -> bool:
    """Return whether `feature` applies to cards of this vendor, as ROCm does to AMD cards only."""
    if feature in _ONLY_NVIDIA:
        return gpu.vendor == "NVIDIA"
    return gpu.vendor == "AMD" if feature == "rocm" else True
