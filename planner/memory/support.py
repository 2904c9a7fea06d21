"""What a card cannot run: engines, optimizers and formats, each with the reason."""

from typing import Final

from planner.dtypes import SCHEMES
from planner.hardware.gpu import Gpu
from planner.memory.engines.support import llama_cpp_reasons, vllm_reasons
from planner.workload.workload import Inference, Training

_NO_PYTORCH_DEVICE: Final = {
    "Google": "TPUs run compiled XLA programs, not PyTorch's eager operators that this estimate describes",
    "AWS": "Trainium runs programs compiled by Neuron, not PyTorch's eager operators that this estimate describes",
}
_GAUDI: Final = (
    "Gaudi runs graphs compiled by its own bridge, not PyTorch's eager operators that this estimate describes"
)
_BITSANDBYTES: Final = (
    "bitsandbytes has no kernels for this card: it needs compute capability 6.0 (7.5 for LLM.int8), ROCm or XPU"
)


def unsupported_reasons(workload: Training | Inference, gpu: Gpu) -> tuple[str, ...]:
    """Return why `gpu` cannot run `workload`, empty if it can.

    **Source**: PyTorch device backends; bitsandbytes installation guide; FlashAttention-2 README (Ampere or newer);
    engines with kernels of their own say what they run on.
    """
    if isinstance(workload, Inference) and workload.profile == "llama.cpp":
        return llama_cpp_reasons(gpu)
    if isinstance(workload, Inference) and workload.profile == "vllm":
        return vllm_reasons(workload, gpu)
    reasons = list(unsupported_backend(gpu))
    if _needs_bitsandbytes(workload) and not _runs_bitsandbytes(workload, gpu):
        reasons.append(_BITSANDBYTES)
    if workload.attention == "flash" and not _runs_flash_attention(gpu):
        reasons.append("FlashAttention needs compute capability 8.0 or an AMD Instinct or RDNA 3 card; choose sdpa")
    return tuple(reasons)


def unsupported_backend(gpu: Gpu) -> tuple[str, ...]:
    """Return why `gpu` does not run PyTorch's eager operators, empty if it does."""
    if gpu.architecture == "Gaudi":
        return (_GAUDI,)
    reason = _NO_PYTORCH_DEVICE.get(gpu.vendor)
    return (reason,) if reason else ()


def _needs_bitsandbytes(workload: Training | Inference) -> bool:
    if isinstance(workload, Training):
        return workload.optimizer == "adamw-8bit"
    scheme = SCHEMES.get(workload.weights or "bf16")
    return scheme is not None and scheme.family == "bitsandbytes"


def _runs_bitsandbytes(workload: Training | Inference, gpu: Gpu) -> bool:
    if gpu.vendor != "NVIDIA" or not gpu.compute_capability:
        return gpu.vendor in ("AMD", "Intel")
    return float(gpu.compute_capability) >= (7.5 if workload.weights == "int8" else 6.0)


def _runs_flash_attention(gpu: Gpu) -> bool:
    if gpu.vendor == "AMD":
        return not gpu.architecture.startswith(("GCN", "RDNA2"))
    if gpu.vendor != "NVIDIA" or not gpu.compute_capability:
        return False
    return float(gpu.compute_capability) >= 8.0
