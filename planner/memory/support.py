"""Reasons why PyTorch cannot run a workload on a card: missing backends, optimizers and number formats."""

from typing import Final

from planner.dtypes import SCHEMES
from planner.hardware.gpu import Gpu
from planner.workload.optimizers import OPTIMIZERS
from planner.workload.workload import Inference, Training

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
    "torchao's fp8 products need compute capability 8.9 or an AMD card of CDNA 3 or newer; choose bf16 or amp-bf16"
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
        reasons.append("FlashAttention needs compute capability 8.0 or an AMD Instinct or RDNA 3 card; choose sdpa")
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
