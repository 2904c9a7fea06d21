"""Settings of a layer's computation (formats, adapters, fused kernels), and the inputs kept for the backward pass."""

from typing import Literal, NamedTuple

from planner.dtypes import ELEMENT_BYTES, SCHEMES
from planner.memory.kernels import MASK, AttentionKind
from planner.memory.precision import Precision
from planner.memory.training.adapters.trained import ReaderCounts
from planner.memory.training.autograd.layer import STATISTIC
from planner.memory.training.losses import FusedKernels
from planner.models.architecture import Norm
from planner.workload.training import Lora, Training


class Formats(NamedTuple):
    """Bytes per element of residual stream, matrix products, projections' outputs, and parameters.

    `stream` are those of the residual stream, `computed` what matrix products and attention read, `projected` what a
    projection outputs; `parameter` those of the network's own weights. `base` is the storage format of its projections.
    """

    stream: int
    computed: int
    projected: int
    parameter: int
    autocast: bool
    base: Literal["plain", "nf4", "int8"] = "plain"

    @property
    def precision(self) -> Precision:
        """Return these bytes per element as a `Precision`, for formulas that know no adapters."""
        return Precision(self.parameter, self.computed, self.stream, self.autocast)

    def normed_bytes(self, norm: Norm) -> int:
        """Return the bytes per element of the output of `norm`; autocast computes fused norms in fp32."""
        return 4 if self.autocast and norm.native else self.stream


class AdapterSettings(NamedTuple):
    """Settings of adapters: rank, bytes per parameter, and bytes per element of the products' input."""

    rank: int
    parameter: int
    read: int
    dropout: bool
    dora: bool
    converts: bool

    def shares_input(self, input_bytes: int) -> bool:
        """Return whether adapters read a tensor of `input_bytes` per element without a copy of their own."""
        same = input_bytes == self.read
        return same and not self.dropout and (not self.converts or input_bytes == self.parameter)


class LayerSettings(NamedTuple):
    """Settings of a layer's computation: formats, attention kernel, adapters and fused kernels."""

    formats: Formats
    attention: AttentionKind
    adapters: AdapterSettings | None
    fused: FusedKernels = FusedKernels()


def formats_of(workload: Training, kept_bytes: int = 4) -> Formats:
    """Return the bytes per element of each kind of value; a quantized network's other parameters take `kept_bytes`.

    **Source**: `peft.utils.other.prepare_model_for_kbit_training` casts what is not quantized to fp32.
    """
    computed = ELEMENT_BYTES[workload.compute.removeprefix("amp-")]
    autocast = workload.compute.startswith("amp-")
    base = workload.weights or "fp32"
    storage: Literal["plain", "nf4", "int8"] = "plain"
    if SCHEMES[base].family != "plain":
        storage = "int8" if base == "int8" else "nf4"
        return Formats(kept_bytes, computed, kept_bytes, kept_bytes, autocast and kept_bytes == 4, storage)
    parameter = ELEMENT_BYTES[base]
    return Formats(parameter if autocast else computed, computed, computed, parameter, autocast)


def adapter_settings(lora: Lora, formats: Formats) -> AdapterSettings:
    """Return the settings of the adapters `lora` on a network whose values have `formats`."""
    parameter = ELEMENT_BYTES[lora.adapter_dtype]
    converts = formats.base == "plain" or not formats.autocast
    read = formats.computed if formats.autocast else parameter
    return AdapterSettings(lora.rank, parameter, read, lora.dropout > 0, lora.dora, converts)


class SavedInput(NamedTuple):
    """Bytes per element kept for the backward pass of a tensor that projections read: tensor, copies, adapters' copies.

    `whole` are those of the tensor itself, without copies.
    """

    whole: int
    copies: int
    adapters: int

    @property
    def total(self) -> int:
        """Return the bytes per element kept for the backward pass of all projections that read the tensor."""
        return self.whole + self.copies + self.adapters


def saved_input(
    settings: LayerSettings, readers: ReaderCounts, input_bytes: int, *, is_kept: bool = False, reached: bool = True
) -> SavedInput:
    """Return the bytes per element that `readers` keep for the backward pass of an input of `input_bytes` per element.

    `is_kept` means that another operation keeps the tensor anyway, `reached` that it needs a gradient itself, without
    which adapters' dropout keeps no mask. Projections of LLM.int8 keep their input, too.
    """
    formats, adapters = settings.formats, settings.adapters
    own = input_bytes != formats.computed and formats.autocast
    whole = (readers.trained > 0 and not own) or (formats.base == "int8" and readers.total > 0)
    copies = readers.trained * formats.computed if own else 0
    beside = 0
    if readers.adapted and adapters is not None:
        shared = adapters.shares_input(input_bytes)
        if settings.fused.adapters or shared:
            whole = True
        else:
            beside = readers.adapted * adapters.read
        beside += readers.adapted * MASK if adapters.dropout and reached else 0
    return SavedInput(0 if is_kept or not whole else input_bytes, copies, beside)


def norm_saved_bytes(norm: Norm, width: int, element_bytes: int, settings: LayerSettings, *, trained: bool) -> int:
    """Return the bytes per token that a norm keeps for the backward pass; `element_bytes` are those of its input."""
    if settings.fused.norms and norm.kind == "rms":
        return element_bytes * width + STATISTIC
    if norm.native:
        read = 4 if norm.upcast or settings.formats.autocast else element_bytes
        return read * width + STATISTIC * (2 if norm.kind == "layer" else 1)
    centred = 4 if norm.kind == "layer" else 0
    scaled = element_bytes if norm.keeps_input and element_bytes < 4 else 0
    product = (4 if norm.fp32_product else element_bytes) if trained else 0
    return (4 + centred + scaled + product) * width + STATISTIC
