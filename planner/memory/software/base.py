"""Interface of a program's memory behavior, with PyTorch's behavior, and the cards that it supports, as the default.

Each program's module overrides the methods in which it differs.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from typing import Final, Generic, TypeVar

from planner.dtypes import SCHEMES
from planner.hardware.gpu import Gpu
from planner.memory.chance import KNOWN_VERSION, Spread
from planner.memory.phases import PagePool, PhaseSnapshots
from planner.memory.result import TermPart
from planner.models.architecture import Architecture
from planner.units import MIB
from planner.workload.optimizers import OPTIMIZERS
from planner.workload.parallel import Parallel
from planner.workload.software.software import EngineSettings
from planner.workload.training import Training
from planner.workload.workload import Inference

_COMPILED: Final = {
    "Google": "TPUs run compiled XLA programs",
    "AWS": "Trainium runs programs compiled by Neuron",
    "Intel": "Gaudi runs graphs compiled by its own bridge",
}
"""What accelerators without a build of PyTorch run, by vendor; others run the vendor's own plugin."""
_BITSANDBYTES: Final = (
    "bitsandbytes has no kernels for this GPU: it needs compute capability 6.0 (7.5 for LLM.int8), ROCm or XPU"
)
_TRITON: Final = (
    "The kernels of this profile are written in Triton, which PyTorch does not run on this GPU: it needs compute "
    "capability 7.0, ROCm or XPU; choose the profile hf"
)
_TRITON_CAPABILITY: Final = 7.0
_IN_16_BITS: Final = "FlashAttention computes in fp16 and bf16 only; choose sdpa, or another format to compute in"
_FP8: Final = (
    "torchao's fp8 products need compute capability 8.9 or an AMD GPU of CDNA 3 or newer; choose bf16 or amp-bf16"
)
_FP8_CAPABILITY: Final = 8.9
_FP8_OF_AMD: Final = ("CDNA3", "CDNA4", "CDNA5")
_STORED_CAPABILITY: Final = {"fp8": 8.9, "fp8-block128": 8.9, "mxfp4": 7.5}
"""The compute capability from which transformers computes with such weights as they are stored.

**Source**: transformers 5.23 `quantizer_finegrained_fp8.py` and `quantizer_mxfp4.py`, `validate_environment`.
"""


def pytorch_reasons(workload: Training | Inference, gpu: Gpu) -> tuple[str, ...]:
    """Return the reasons why `gpu` cannot run `workload` with PyTorch's eager operators, empty if it can.

    **Source**: PyTorch device backends; bitsandbytes installation guide; FlashAttention-2 README (Ampere or newer, fp16
    and bf16). bf16 is no reason: older cards emulate it (`torch.cuda.is_bf16_supported`, `including_emulation`).
    """
    reasons = list(unsupported_backend(gpu))
    if _needs_bitsandbytes(workload) and not _runs_bitsandbytes(workload, gpu):
        reasons.append(_BITSANDBYTES)
    if workload.attention == "flash" and not _runs_flash_attention(gpu):
        reasons.append("FlashAttention needs compute capability 8.0 or an AMD Instinct or RDNA 3 GPU; choose sdpa")
    if workload.attention == "flash" and workload.compute in ("fp32", "tf32"):
        reasons.append(_IN_16_BITS)
    if isinstance(workload, Training) and workload.compute == "fp8" and not _multiplies_fp8(gpu):
        reasons.append(_FP8)
    least = _STORED_CAPABILITY.get(workload.weights or "bf16")
    if least is not None and gpu.vendor == "NVIDIA" and float(gpu.compute_capability or least) < least:
        stored = SCHEMES[workload.weights or "bf16"].title
        reasons.append(f"transformers converts {stored} to bf16 below compute capability {least}; choose bf16")
    return tuple(reasons)


def unsupported_backend(gpu: Gpu) -> tuple[str, ...]:
    """Return the reason why `gpu` has no backend for PyTorch's eager operators, empty if it has one."""
    if gpu.has_pytorch_build:
        return ()
    runs = _COMPILED.get(gpu.vendor, f"{gpu.vendor}'s accelerators run PyTorch through a plugin of their own")
    return (f"{runs}, but this estimate describes PyTorch's eager operators",)


def _needs_bitsandbytes(workload: Training | Inference) -> bool:
    """Return whether the workload's optimizer or number format comes from bitsandbytes."""
    if isinstance(workload, Training) and OPTIMIZERS[workload.optimizer].library == "bitsandbytes":
        return True
    if workload.weights is None and isinstance(workload, Training) and workload.method == "qlora":
        return True
    scheme = SCHEMES.get(workload.weights or "bf16")
    return scheme is not None and scheme.family == "bitsandbytes"


def _runs_bitsandbytes(workload: Training | Inference, gpu: Gpu) -> bool:
    """Return whether bitsandbytes has kernels for `gpu` and the workload's number format."""
    if gpu.vendor != "NVIDIA" or not gpu.compute_capability:
        return gpu.vendor in ("AMD", "Intel")
    return float(gpu.compute_capability) >= (7.5 if workload.weights == "int8" else 6.0)


def _multiplies_fp8(gpu: Gpu) -> bool:
    """Return whether `gpu` multiplies fp8 matrices in PyTorch (`torch._scaled_mm`)."""
    if gpu.vendor == "AMD":
        return gpu.architecture in _FP8_OF_AMD
    return gpu.vendor == "NVIDIA" and float(gpu.compute_capability or 0) >= _FP8_CAPABILITY


def triton_reasons(gpu: Gpu) -> tuple[str, ...]:
    """Return the reason why `gpu` cannot run kernels written in Triton, empty if it can.

    **Source**: torch/_inductor/scheduler.py (`GPUTooOldForTriton`) and Liger-Kernel's README, whose kernels "inherit
    the full spectrum of hardware compatibility offered by Triton".
    """
    if gpu.vendor == "NVIDIA":
        return () if float(gpu.compute_capability or _TRITON_CAPABILITY) >= _TRITON_CAPABILITY else (_TRITON,)
    return () if gpu.vendor in ("AMD", "Intel") else (_TRITON,)


def _runs_flash_attention(gpu: Gpu) -> bool:
    """Return whether the FlashAttention library has kernels for `gpu`."""
    if gpu.vendor == "AMD":
        return not gpu.architecture.startswith(("GCN", "RDNA2"))
    if gpu.vendor != "NVIDIA" or not gpu.compute_capability:
        return False
    return float(gpu.compute_capability) >= 8.0


WorkloadT = TypeVar("WorkloadT", Training, Inference)

_NCCL_SOURCE: Final = "NVIDIA/nccl#964: 544 MB for 2 GPUs, 688 MB for more, on A100 with NVLink"
_PAIR: Final = 544 * 10**6
_MORE: Final = 688 * 10**6
_FURTHER_CHANNELS: Final = 512 * MIB


class SoftwareMemory(ABC, Generic[WorkloadT]):
    """Memory behavior of a program, in training or serving.

    `split_note` explains how it splits layers over unequal cards. `place_decides_formats` means that the format of a
    tensor depends on its layer, `head_on_first_stage` that the first stage of a pipeline computes the logits, and
    `divides_vocabulary` that tensor-parallel cards share the rows of embedding and head. `spread` is that of
    measurements of it, whatever its version.
    """

    split_note: str
    place_decides_formats: bool = False
    head_on_first_stage: bool = False
    divides_vocabulary: bool = True
    spread: Spread = KNOWN_VERSION
    communicator_bytes: tuple[int, int] = (_PAIR, _MORE)
    communicator_source: str = _NCCL_SOURCE

    @abstractmethod
    def timeline(self, architecture: Architecture, workload: WorkloadT, card_class: Hashable = None) -> PhaseSnapshots:
        """Return the memory in each phase of `workload` (defaults filled in) on a card of `card_class`."""

    def card_class(self, _gpu: Gpu) -> Hashable:
        """Return the class of cards to which the program's defaults for `_gpu` belong, None if all have the same."""
        return None

    def unsupported_reasons(self, workload: WorkloadT, gpu: Gpu) -> tuple[str, ...]:
        """Return the reasons why `gpu` cannot run `workload`, empty if it can."""
        return pytorch_reasons(workload, gpu)

    def spread_of(self, _workload: WorkloadT) -> Spread:
        """Return the spread of measurements of the program with such a workload."""
        return self.spread

    def notes(self, _workload: WorkloadT) -> Iterator[str]:
        """Yield notes for users on what the program's estimate assumes."""
        yield from ()

    def vocabulary_multiple(self, _tensor: int) -> int:
        """Return the multiple to which `_tensor` tensor-parallel cards each round up their vocabulary rows."""
        return 1

    @abstractmethod
    def split_layers(
        self, architecture: Architecture, workload: WorkloadT, free_bytes: tuple[int, ...] = ()
    ) -> tuple[int, ...]:
        """Return the number of layers of each pipeline stage, by default for workloads that do not set the numbers.

        `free_bytes` is the free memory of each card, given if known and unequal.
        """

    @abstractmethod
    def communication_group_sizes(self, parallel: Parallel) -> dict[str, int]:
        """Return the number of cards in each communication group (NCCL communicator) of a card, by group name."""

    def communicators(self, workload: WorkloadT) -> tuple[TermPart, ...]:
        """Return each card's memory of NCCL communicators for `workload`, outside PyTorch's allocator.

        **Formula**: 544 MB for each group of two cards, 688 MB for each larger one, unless other values were measured
        for the program.

        **Assumes** links and channels as on an A100 server: other cards hold from nothing to 512 MiB more for each
        group.
        """
        of_two, of_more = self.communicator_bytes
        communicator_parts = []
        for name, size in self.communication_group_sizes(workload.parallel).items():
            if size > 1:
                held, title = (of_two if size == 2 else of_more), f"NCCL communicator, {size:,} GPUs ({name})"
                communicator_parts.append(
                    TermPart(name=title, bytes=held, formula=f"{held:,}", source=self.communicator_source)
                )
        return tuple(communicator_parts)

    def most_communicator_bytes(self, parts: tuple[TermPart, ...]) -> int:
        """Return the upper bound of the communicators' memory in bytes."""
        return sum([part.bytes + _FURTHER_CHANNELS for part in parts])


class ServingMemory(SoftwareMemory[Inference]):
    """Memory behavior of a program that serves requests."""

    def communication_group_sizes(self, parallel: Parallel) -> dict[str, int]:
        """Return the cards of each communication group within one replica; serving replicas do not communicate."""
        return {"tensor": parallel.tensor, "expert": parallel.expert, "context": parallel.context}

    def pool_beside(self, pool: PagePool, communicator_bytes: int) -> PagePool:
        """Return the cache pool of a card whose NCCL communicators take `communicator_bytes` before it is sized."""
        return pool.with_taken(communicator_bytes)

    def settings_in_use(self, _architecture: Architecture, workload: Inference, _gpu: Gpu | None) -> EngineSettings:
        """Return the engine settings of `workload` with unset ones replaced by the program's defaults."""
        return workload.engine

    def with_returned_outputs(
        self, first: PhaseSnapshots, _last: PhaseSnapshots, _workload: Inference
    ) -> PhaseSnapshots:
        """Return the timeline of the first pipeline stage with outputs that the last stage returns to it."""
        return first
