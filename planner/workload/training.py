"""How a model is trained, with the choices that decide its memory."""

from typing import Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from planner.base import Spec
from planner.dtypes import SCHEMES
from planner.workload.choices import Attention, Checkpointing, Compute, Loss, Method, TrainedFormat
from planner.workload.diffusion import ImageSize
from planner.workload.optimizers import OPTIMIZERS, Optimizer, OptimizerStep
from planner.workload.parallel import CardCount, Parallel
from planner.workload.software.registry import DEFAULT, SOFTWARE, TrainerName, trainer

PARAMETER_FORMATS: Final[dict[Compute, tuple[str, ...]]] = {
    "fp32": ("fp32",),
    "tf32": ("fp32",),
    "bf16": ("bf16",),
    "fp16": ("fp16",),
    "amp-bf16": ("fp32", "bf16"),
    "amp-fp16": ("fp32",),
    "fp8": ("fp32", "bf16"),
}
"""The formats that trained parameters can be kept in for each way to compute."""

FROZEN_FORMATS: Final[dict[Compute, tuple[str, ...]]] = PARAMETER_FORMATS | {"amp-fp16": ("fp32", "fp16")}
"""The plain formats that the frozen network under adapters can be kept in for each way to compute."""

BASE_FORMATS: Final[dict[Method, tuple[str, ...]]] = {
    "full": ("fp32", "bf16", "fp16"),
    "lora": ("fp32", "bf16", "fp16", "int8"),
    "qlora": ("nf4", "nf4-dq"),
}
"""The formats that the network's own parameters can have under each method."""

_QUANTISED_TARGETS: Final = "bitsandbytes cannot train quantised weights themselves"


class Lora(Spec):
    """Low-rank adapters beside linear layers; everything else is frozen."""

    rank: int = Field(default=16, ge=1, le=65_536)
    targets: Literal["all-linear"] | tuple[str, ...] = Field(
        default="all-linear", description="all-linear: all but the output head, as in PEFT; or ends of module paths"
    )
    adapter_dtype: Literal["fp32", "bf16"] = Field(
        default="fp32", description="PEFT keeps adapters in fp32 on a base in 16 bits or fewer, too"
    )
    dropout: float = Field(default=0.0, ge=0, lt=1)
    dora: bool = Field(default=False, description="weight-decomposed adapters, with a magnitude for each output")

    @field_validator("targets", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        """Take names with commas between them, as on the command line, and `all-linear` in a list."""
        if isinstance(value, str) and value != "all-linear":
            value = tuple(part.strip() for part in value.split(",") if part.strip())
        if isinstance(value, list | tuple):
            if not value:
                raise ValueError("name at least one linear layer, or all-linear")
            if "all-linear" in value:
                return "all-linear"
        return value


class Training(Spec):
    """One optimizer step: of every parameter, of those that `trainable` names, or of adapters.

    Fields that are `None` are filled in by `with_defaults` from the model.
    """

    task: Literal["training"] = "training"
    method: Method = "full"
    weights: TrainedFormat | None = Field(
        default=None,
        description="format the parameters are kept in; by default fp32 under autocast, else as computed; under "
        "adapters 16 bits, or NF4",
    )
    compute: Compute = Field(
        default="amp-bf16",
        description="amp-…: autocast; it keeps trained parameters in fp32; fp8: torchao's linear layers",
    )
    lora: Lora | None = Field(default=None, description="of the methods lora and qlora")
    trainable: tuple[str, ...] = Field(
        default=(), description="patterns of parameter names that are trained, such as layers.31 or *norm*; else all"
    )
    optimizer: Optimizer = "adamw"
    optimizer_step: OptimizerStep | None = Field(
        default=None, description="fused, foreach or loop; by default as the trainer of the profile asks for"
    )
    gradient_clipping: bool = Field(default=False, description="whether gradients are clipped by their norm")
    micro_batch: int = Field(default=1, ge=1, le=1_000_000, description="sequences per card and forward pass")
    gradient_accumulation: int = Field(default=1, ge=1, le=1_000_000)
    image_size: ImageSize | None = Field(
        default=None, description="width and height that an image encoder reads; by default the model's own"
    )
    sequence_length: int | None = Field(default=None, ge=1, le=100_000_000, description="tokens per sequence")
    activation_checkpointing: Checkpointing = "none"
    checkpoint_every: int = Field(default=1, ge=1, le=10_000, description="layers between two kept inputs")
    attention: Attention = "sdpa"
    loss: Loss | None = Field(default=None, description="by default as the profile computes it, else full-logits")
    loss_chunks: int = Field(default=8, ge=1, le=100_000, description="parts in which a chunked loss is computed")
    profile: TrainerName = DEFAULT
    parallel: Parallel = Parallel()
    gpus: tuple[CardCount, ...] = Field(
        default=(), description="unequal cards, instead of the plan's one kind: [{id, count}, …]"
    )
    other_processes_bytes: int = Field(default=0, ge=0, description="held on the card by other processes")

    @property
    def adapts(self) -> bool:
        """Return whether adapters are trained instead of the network's own parameters."""
        return self.method != "full"

    @model_validator(mode="after")
    def _method_has_what_is_asked(self) -> Self:
        """Refuse adapters of a method that has none, and formats that the method or the arithmetic cannot train."""
        if self.lora is not None and not self.adapts:
            raise ValueError("adapters belong to the methods lora and qlora, and the method is full")
        if self.trainable and self.adapts:
            raise ValueError(f"{self.method} trains its adapters only: leave out trainable, or choose the method full")
        quantised = trainer(self.profile).quantised_compute
        if self.method == "qlora" and self.compute not in quantised:
            raise ValueError(f"qlora is not computed in {self.compute} here: choose {' or '.join(quantised)}")
        if self.weights is not None:
            _check_format(self)
        if self.lora is not None:
            _check_adapters(self.lora, self.compute)
        return self

    @model_validator(mode="after")
    def _step_is_there(self) -> Self:
        """Refuse a way to step that the optimizer does not have, and segments without checkpoints."""
        kind = OPTIMIZERS[self.optimizer]
        if self.optimizer_step is not None and self.optimizer_step not in kind.steps:
            raise ValueError(f"{kind.title} has no {self.optimizer_step} step; it has {', '.join(kind.steps)}")
        if self.checkpoint_every > 1 and self.activation_checkpointing != "full":
            raise ValueError("checkpoint_every needs activation_checkpointing full")
        if self.activation_checkpointing == "selective":
            self._check_selective()
        if kind.fp32_only and self._trains_16_bits():
            raise ValueError("SOAP multiplies gradients with fp32 matrices: keep what is trained in fp32")
        return self

    @model_validator(mode="after")
    def _computes_in_fp8(self) -> Self:
        """Refuse fp8 where other linear layers than PyTorch's stand."""
        if self.compute == "fp8" and self.adapts:
            raise ValueError("fp8 takes the place of linear layers, and so do adapters: choose amp-bf16")
        if self.compute not in trainer(self.profile).compute:
            title = SOFTWARE[self.profile].title_for("training")
            raise ValueError(f"fp8 is torchao's, and {title} has linear layers of its own: choose bf16 or amp-bf16")
        return self

    def _trains_16_bits(self) -> bool:
        if self.adapts:
            return self.lora is not None and self.lora.adapter_dtype == "bf16"
        return (self.weights or self.compute) in ("bf16", "fp16")

    def _check_selective(self) -> None:
        if "selective" not in trainer(self.profile).checkpointing:
            raise ValueError(f"{self.profile}'s selective checkpoints are every k-th layer's: choose full or none")
        if self.lora is not None and self.lora.dora:
            raise ValueError("selective checkpoints would keep DoRA's products of weights, too: choose full or none")


def arithmetic(compute: Compute) -> str:
    """Return the format that matrix products put out; under fp8, which they read in 8 bits, that is bf16."""
    return "bf16" if compute == "fp8" else compute.removeprefix("amp-")


def autocasts(compute: Compute) -> bool:
    """Return whether parameters in fp32 are computed in 16 bits, or fewer."""
    return compute == "fp8" or compute.startswith("amp-")


def formats_for(method: Method, compute: Compute, profile: str = DEFAULT) -> tuple[str, ...]:
    """Return the formats that the network's own parameters can have under `method`, computed so."""
    plain = (PARAMETER_FORMATS if method == "full" else FROZEN_FORMATS).get(compute, ())
    quantised = compute in trainer(profile).quantised_compute
    formats = BASE_FORMATS.get(method, ())
    return tuple(name for name in formats if (name in plain if SCHEMES[name].family == "plain" else quantised))


def _check_format(workload: Training) -> None:
    method, weights, compute = workload.method, workload.weights or "fp32", workload.compute
    formats = BASE_FORMATS[method]
    if weights not in formats:
        if method == "full":
            raise ValueError(f"{SCHEMES[weights].title}: {_QUANTISED_TARGETS}; choose the method qlora or lora")
        raise ValueError(f"{method} keeps the network in {' or '.join(formats)}, not in {weights}")
    if SCHEMES[weights].family != "plain":
        quantised = trainer(workload.profile).quantised_compute
        if compute not in quantised:
            raise ValueError(f"{weights} under adapters is not computed in {compute}: choose {' or '.join(quantised)}")
        return
    allowed = (PARAMETER_FORMATS if method == "full" else FROZEN_FORMATS)[compute]
    if weights not in allowed:
        raise ValueError(f"parameters in {weights} cannot be trained in {compute}; it takes {' or '.join(allowed)}")


def _check_adapters(lora: Lora, compute: Compute) -> None:
    if lora.adapter_dtype == "bf16" and compute in ("fp16", "amp-fp16"):
        raise ValueError(f"adapters in bf16 do not go with {compute}; keep them in fp32")
