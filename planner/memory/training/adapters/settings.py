"""How layers are computed and trained: formats, adapters, fused kernels; and what is kept of a tensor that is read."""

from typing import Literal, NamedTuple

from planner.dtypes import ELEMENT_BYTES, SCHEMES
from planner.memory.kernels import MASK, AttentionKind
from planner.memory.precision import Precision
from planner.memory.training.adapters.trained import Uses
from planner.memory.training.autograd.layer import STATISTIC
from planner.memory.training.fused import FusedKernels
from planner.models.architecture import Norm
from planner.workload.training import Lora, Training


class Formats(NamedTuple):
    """Bytes per element under a precision and a way to store the frozen network.

    `stream` are those of the residual stream, `computed` what matrix products and attention read, `projected` what a
    projection puts out; `parameter` those of the network's own weights. `base` says how its projections are stored.
    """

    stream: int
    computed: int
    projected: int
    parameter: int
    autocast: bool
    base: Literal["plain", "nf4", "int8"] = "plain"

    @property
    def precision(self) -> Precision:
        """Return the same for formulas that know no adapters."""
        return Precision(self.parameter, self.computed, self.stream, self.autocast)

    def normed(self, norm: Norm) -> int:
        """Return the bytes of what `norm` puts out: autocast computes fused norms in fp32."""
        return 4 if self.autocast and norm.native else self.stream


class Adapters(NamedTuple):
    """How adapters compute: rank, bytes of their parameters, and what their products read."""

    rank: int
    parameter: int
    read: int
    dropout: bool
    dora: bool
    converts: bool

    def shares(self, input_bytes: int) -> bool:
        """Return whether they read a tensor of `input_bytes` an element as it is."""
        same = input_bytes == self.read
        return same and not self.dropout and (not self.converts or input_bytes == self.parameter)


class LayerSettings(NamedTuple):
    """How a layer is computed and trained, its own tuning aside."""

    formats: Formats
    attention: AttentionKind
    adapters: Adapters | None
    fused: FusedKernels = FusedKernels()


def formats_of(workload: Training, kept_bytes: int = 4) -> Formats:
    """Return the bytes of each kind of value; beside quantised parameters the others have `kept_bytes` each.

    **Source**: `peft.utils.other.prepare_model_for_kbit_training` casts what is not quantised to fp32.
    """
    computed = ELEMENT_BYTES[workload.compute.removeprefix("amp-")]
    autocast = workload.compute.startswith("amp-")
    base = workload.weights or "fp32"
    quantised: Literal["plain", "nf4", "int8"] = "plain"
    if SCHEMES[base].family != "plain":
        quantised = "int8" if base == "int8" else "nf4"
        return Formats(kept_bytes, computed, kept_bytes, kept_bytes, autocast and kept_bytes == 4, quantised)
    parameter = ELEMENT_BYTES[base]
    return Formats(parameter if autocast else computed, computed, computed, parameter, autocast)


def adapters_of(lora: Lora, formats: Formats) -> Adapters:
    """Return how the adapters `lora` compute beside a network in `formats`."""
    parameter = ELEMENT_BYTES[lora.adapter_dtype]
    converts = formats.base == "plain" or not formats.autocast
    read = formats.computed if formats.autocast else parameter
    return Adapters(lora.rank, parameter, read, lora.dropout > 0, lora.dora, converts)


class Read(NamedTuple):
    """Bytes per element of a tensor that are kept for the projections reading it, and for their adapters apart.

    `whole` of them are those of the tensor as it is.
    """

    whole: int
    copies: int
    adapters: int

    @property
    def total(self) -> int:
        """Return all of them."""
        return self.whole + self.copies + self.adapters


def read_bytes(
    settings: LayerSettings, used: Uses, input_bytes: int, *, is_kept: bool = False, reached: bool = True
) -> Read:
    """Return what `used` projections keep of an element that they read, in `input_bytes`.

    `is_kept` says that something else keeps the tensor anyway, `reached` that it needs a derivative itself, without
    which adapters' dropout keeps no mask. Projections of LLM.int8 keep what they read, too.
    """
    formats, adapters = settings.formats, settings.adapters
    own = input_bytes != formats.computed and formats.autocast
    whole = (used.trained > 0 and not own) or (formats.base == "int8" and used.total > 0)
    copies = used.trained * formats.computed if own else 0
    beside = 0
    if used.adapted and adapters is not None:
        shared = adapters.shares(input_bytes)
        if settings.fused.adapters or shared:
            whole = True
        else:
            beside = used.adapted * adapters.read
        beside += used.adapted * MASK if adapters.dropout and reached else 0
    return Read(0 if is_kept or not whole else input_bytes, copies, beside)


def norm_kept(norm: Norm, width: int, size: int, settings: LayerSettings, *, trained: bool) -> int:
    """Count a norm of an input in `size` bytes an element, through which a derivative goes."""
    if settings.fused.norms and norm.kind == "rms":
        return size * width + STATISTIC
    if norm.native:
        read = 4 if norm.upcast or settings.formats.autocast else size
        return read * width + STATISTIC * (2 if norm.kind == "layer" else 1)
    centred = 4 if norm.kind == "layer" else 0
    scaled = size if norm.keeps_input and size < 4 else 0
    product = (4 if norm.fp32_product else size) if trained else 0
    return (4 + centred + scaled + product) * width + STATISTIC
