"""What share of a card's figures work of a kind reaches: classes by family, format and size, each with its source."""

from typing import Literal

from planner.hardware.gpu import Gpu

Family = Literal[
    "A100",
    "Hopper SXM",
    "Hopper PCIe",
    "Blackwell data centre",
    "Volta",
    "Turing",
    "Ampere GDDR",
    "Ada",
    "Blackwell GDDR",
    "Instinct",
    "Radeon",
    "Intel",
    "Apple",
    "TPU",
    "other",
]

_BY_ARCHITECTURE: dict[str, Family] = {
    "Volta": "Volta",
    "Turing": "Turing",
    "Ampere": "Ampere GDDR",
    "Ada Lovelace": "Ada",
    "Hopper": "Hopper SXM",
    "Blackwell": "Blackwell GDDR",
    "Blackwell Ultra": "Blackwell data centre",
    "CDNA": "Instinct",
    "CDNA2": "Instinct",
    "CDNA3": "Instinct",
    "CDNA4": "Instinct",
    "CDNA5": "Instinct",
    "RDNA2": "Radeon",
    "RDNA3": "Radeon",
    "RDNA3.5": "Radeon",
    "RDNA4": "Radeon",
}
_BY_VENDOR: dict[str, Family] = {"Intel": "Intel", "Apple": "Apple", "Google": "TPU"}


def family_of(gpu: Gpu) -> Family:
    """Return the family whose measurements speak for `gpu`: an architecture with its kind of memory and power."""
    stacked = (gpu.memory_type or "").startswith("HBM")
    if gpu.architecture == "Ampere" and stacked:
        return "A100"
    if gpu.architecture == "Blackwell" and stacked:
        return "Blackwell data centre"
    if gpu.architecture == "Hopper" and "PCIe" in (gpu.form_factor or ""):
        return "Hopper PCIe"
    return _BY_ARCHITECTURE.get(gpu.architecture) or _BY_VENDOR.get(gpu.vendor, "other")
