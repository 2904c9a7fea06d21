"""The versions of the driver's parts."""

from typing import NamedTuple

from planner.monitor.nvml import Nvml, NvmlFailure


class Versions(NamedTuple):
    """What the driver calls its parts; empty where it does not tell."""

    driver: str = ""
    nvml: str = ""
    cuda: str = ""


def read_versions(nvml: Nvml) -> Versions:
    """Return the versions, as far as they are told."""
    driver = _text(nvml, "nvmlSystemGetDriverVersion")
    library = _text(nvml, "nvmlSystemGetNVMLVersion")
    try:
        number = int(nvml.call("nvmlSystemGetCudaDriverVersion_v2", ""))
    except NvmlFailure:
        return Versions(driver, library)
    # 13000 is CUDA 13.0 (nvml.h, NVML_CUDA_DRIVER_VERSION_MAJOR and _MINOR).
    return Versions(driver, library, f"{number // 1000}.{number % 1000 // 10}")


def _text(nvml: Nvml, call: str) -> str:
    try:
        return nvml.text(call, "")
    except NvmlFailure:
        return ""
