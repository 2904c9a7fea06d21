"""What vLLM and llama.cpp cannot run on."""

from typing import Final

from planner.hardware.gpu import Gpu
from planner.memory.engines.vllm_setup import settings_of
from planner.workload.workload import Inference

_PLUGINS: Final = {
    "Google": "TPUs run vLLM through a plugin of its own, whose memory this estimate does not describe",
    "AWS": "Trainium runs vLLM through a plugin of its own, whose memory this estimate does not describe",
    "Apple": "Apple GPUs run vLLM through the plugin vllm-metal, whose memory this estimate does not describe",
}
_GAUDI: Final = "Gaudi runs vLLM through a plugin of its own, whose memory this estimate does not describe"
_NO_BACKEND: Final = ("Google", "AWS")
_ROCM_FAMILIES: Final = ("CDNA2", "CDNA3", "CDNA4", "CDNA5", "RDNA3", "RDNA4")
_LEAST_CAPABILITY: Final = {"0.33": 7.5, "0.19": 7.0, "0.11": 7.0}
_BFLOAT16_CAPABILITY: Final = 8.0


def vllm_reasons(workload: Inference, gpu: Gpu) -> tuple[str, ...]:
    """Return why vLLM does not run `workload` on `gpu`, empty if it does.

    **Source**: vLLM's installation guides: compute capability 7.5 (7.0 in 0.14), MI200 and newer, Radeon RX 7900 and
    newer, Intel Arc and Data Center GPUs; platforms/cuda.py check_if_supports_dtype for bf16.
    """
    if gpu.architecture == "Gaudi":
        return (_GAUDI,)
    if gpu.vendor in _PLUGINS:
        return (_PLUGINS[gpu.vendor],)
    if gpu.vendor == "AMD":
        runs = gpu.architecture.startswith(_ROCM_FAMILIES)
        return () if runs else ("vLLM needs an AMD Instinct MI200 or newer, or a Radeon of RDNA 3 or newer",)
    return _cuda_reasons(workload, gpu) if gpu.vendor == "NVIDIA" else ()


def _cuda_reasons(workload: Inference, gpu: Gpu) -> tuple[str, ...]:
    least = _LEAST_CAPABILITY[settings_of(workload).version or "0.33"]
    capability = float(gpu.compute_capability or 0)
    if capability < least:
        return (f"vLLM {settings_of(workload).version or '0.33'} needs compute capability {least}",)
    if workload.compute == "bf16" and capability < _BFLOAT16_CAPABILITY:
        return ("vLLM computes in bf16 from compute capability 8.0 on; choose fp16",)
    return ()


def llama_cpp_reasons(gpu: Gpu) -> tuple[str, ...]:
    """Return why llama.cpp does not run on `gpu`, empty if it does.

    **Source**: llama.cpp 0.5.0 README.md, supported backends: CUDA, HIP, SYCL, Metal, and Vulkan for other GPUs; it
    lists none for TPUs, Trainium or Gaudi.
    """
    if gpu.vendor in _NO_BACKEND or gpu.architecture == "Gaudi":
        return ("llama.cpp has no backend for it",)
    return ()
