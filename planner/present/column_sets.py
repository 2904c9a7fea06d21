"""Which columns answer which question: sets to begin with."""

from typing import Final

COLUMN_SETS: Final[dict[str, tuple[str, ...]]] = {
    "training": (
        *("name", "fits", "job_time", "memory", "bf16", "fp8", "bandwidth", "interconnect"),
        *("power", "tflops_per_watt"),
    ),
    "inference": (
        *("name", "fits", "job_time", "memory", "bandwidth", "bf16", "fp8", "int8", "fp4"),
        *("ridge_point", "power"),
    ),
    "money": (
        *("name", "fits", "job_cost", "job_cost_tokens", "memory", "price", "street", "used", "rent"),
        *("usd_per_gib", "usd_per_tflops", "bandwidth_per_usd"),
    ),
    "power": (
        *("name", "fits", "power", "tflops_per_watt", "bandwidth_per_watt", "gib_per_watt"),
        *("memory", "bf16", "form_factor"),
    ),
    "what they are": ("name", "part", "vendor", "segment", "architecture", "compute_capability", "year", "certainty"),
}
"""Sets of an accelerator's columns by name; each begins with the name, so that the first column stays."""
