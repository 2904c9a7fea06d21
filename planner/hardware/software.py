"""What software runs on a card: number formats, kernels, and the versions of frameworks that still know it.

Facts are about what software is built for, a compute capability, an AMD target or an architecture, not about a card:
every card of it shares them.
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
"""The features that are shown, with their titles and in their order; the other formats are only told where lacking."""
_FORMATS: Final[frozenset[Feature]] = frozenset(("fp64", "tf32", "fp16", "bf16", "fp8", "int8", "fp4"))
_ONLY_NVIDIA: Final[frozenset[Feature]] = frozenset(("marlin", "mig", "cuda", "driver", "flash-attention-3"))
_NOT_READ: Final = "no source that was read says it of this card"
_HAS_RATE: Final = "a rate is published for it"


class SoftwareFact(Spec):
    """What one source says of one feature on some targets, as `target_of` names them.

    `oldest` and `newest` are the first and the last version with support; none where there is no end, or where the
    note says why it is not known.
    """

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    feature: Feature
    targets: tuple[str, ...] = Field(min_length=1)
    support: Support
    oldest: str | None = Field(default=None, min_length=1)
    newest: str | None = Field(default=None, min_length=1)
    note: str | None = Field(default=None, min_length=3)
    source: str = Field(min_length=3)
    as_of: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$", description="the day the source was read")


class FeatureSupport(NamedTuple):
    """What is known of one feature on one card; `support` is none where nothing is, and `reason` then says why."""

    feature: Feature
    support: Support | None
    oldest: str | None = None
    newest: str | None = None
    reason: str = ""
    source: str = ""
    as_of: str = ""

    @property
    def title(self) -> str:
        """Return the name of the feature."""
        return FEATURES[self.feature]

    @property
    def versions(self) -> str:
        """Return `from 9.0 to 12.x`, `to 2.14`, or nothing where no version is named."""
        parts = (f"from {self.oldest}" if self.oldest else "", f"to {self.newest}" if self.newest else "")
        return " ".join(part for part in parts if part)


def target_of(gpu: Gpu) -> str:
    """Return what software is built for on `gpu`.

    That is a compute capability (8.9), an AMD target (gfx942) or, where it has neither, its architecture (TPU v5e).
    """
    return gpu.compute_capability or gpu.architecture


def software_of(gpu: Gpu, facts: Iterable[SoftwareFact]) -> tuple[FeatureSupport, ...]:
    """Return what is known of every feature that `gpu` can have, in the order of `FEATURES`.

    CUDA and its kernels are left out for cards that are not NVIDIA's, ROCm for those that are not AMD's. A format for
    which the card has a published rate is one that it computes in, though no fact says so.
    """
    target = target_of(gpu)
    known = {fact.feature: fact for fact in facts if target in fact.targets}
    return tuple(_support(gpu, feature, known.get(feature)) for feature in FEATURES if _concerns(gpu, feature))


def lacking_formats(facts: Iterable[SoftwareFact]) -> Mapping[str, Mapping[str, SoftwareFact]]:
    """Return the number formats that a chip does not compute in, and who says so, by its target."""
    lacking: dict[str, dict[str, SoftwareFact]] = {}
    for fact in facts:
        if fact.feature in _FORMATS and fact.support == "no":
            for target in fact.targets:
                lacking.setdefault(target, {})[fact.feature] = fact
    return lacking


def _support(gpu: Gpu, feature: Feature, fact: SoftwareFact | None) -> FeatureSupport:
    if feature == "mig" and gpu.mig is not None:  # a property of the product, not of its chip
        told = gpu.provenance_of("mig")
        return FeatureSupport(feature, "yes" if gpu.mig else "no", source=told.source, as_of=told.as_of)
    if fact is not None:
        return FeatureSupport(feature, fact.support, fact.oldest, fact.newest, fact.note or "", fact.source, fact.as_of)
    told = gpu.provenance_of(f"rate.{feature}")
    if gpu.rate(feature) is None or told.basis == "derived":
        return FeatureSupport(feature, None, reason=_NOT_READ)
    return FeatureSupport(feature, "yes", reason=_HAS_RATE, source=told.source, as_of=told.as_of)


def _concerns(gpu: Gpu, feature: Feature) -> bool:
    if feature in _ONLY_NVIDIA:
        return gpu.vendor == "NVIDIA"
    return gpu.vendor == "AMD" if feature == "rocm" else True


OTHER_MACHINES: Final[dict[str, str]] = {
    "TPU": (
        "TPUs are Google's accelerators for large matrix products, rented in slices and programmed through XLA (JAX, "
        "PyTorch/XLA): for those who train or serve at scale in Google's cloud."
    ),
    "FPGA": (
        "FPGAs are chips whose circuits are set after they are made: for fixed networks that must answer within "
        "microseconds or on few watts, and not for training or for models that change."
    ),
    "CPU": (
        "A processor runs what fits into its own memory; when it writes text, memory bandwidth sets the pace, as on "
        "a card, and two channels of DDR5-5600 give 90 GB/s, a tenth of a GeForce RTX 4090; to plan for one, let "
        "llama.cpp run the model with no layer on the card."
    ),
}
"""One sentence each on machines of another kind than the cards of the table.

**Source** TPU: https://cloud.google.com/tpu/docs/intro-to-tpu. FPGA: Umuroglu et al., FINN, FPGA 2017.
CPU: channels × 8 bytes × transfers per second, 2 × 8 × 5.6e9 = 89.6 GB/s (JEDEC JESD79-5); RTX 4090: 1,008 GB/s.
"""


def about_other_machines(words: str) -> str:
    """Return the sentence on each kind of machine that `words` name and the table does not have; or nothing."""
    named = set(words.upper().split())
    asked = (name for name, also in _ALSO_CALLED.items() if named & {name, *also})
    return " ".join(OTHER_MACHINES[name] for name in asked)


_ALSO_CALLED: Final = {"FPGA": ("FPGAS",), "CPU": ("CPUS", "PROCESSOR", "PROCESSORS", "RYZEN", "EPYC", "XEON")}
