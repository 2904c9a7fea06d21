"""Predefined sets of accelerator columns, and the titles of the columns that accelerators can be sorted by.

Kept apart from the columns themselves, so that a menu can be built without loading them.
"""

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
        *("name", "fits", "job_cost", "job_cost_tokens", "memory", "buy", "price", "street", "used", "rent"),
        *("usd_per_gib", "usd_per_tflops", "bandwidth_per_usd"),
    ),
    "power": (
        *("name", "fits", "power", "tflops_per_watt", "bandwidth_per_watt", "gib_per_watt"),
        *("memory", "bf16", "form_factor"),
    ),
    "identity": ("name", "part", "vendor", "segment", "architecture", "compute_capability", "year", "certainty"),
}
"""Column keys of each predefined set, by set name; every set starts with `name`, so that the first column stays."""
COLUMN_GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "Your plan": ("fits", "job_time", "job_cost", "job_cost_tokens"),
    "Price": (
        *("buy", "price", "street", "used", "rent", "paid"),
        *("usd_per_gib", "usd_per_tflops", "bandwidth_per_usd"),
    ),
    "Memory": ("memory", "usable_memory", "bandwidth", "ecc"),
    "Compute": ("bf16", "fp16", "fp8", "int8", "fp4", "fp32", "ridge_point"),
    "Power": ("power", "tflops_per_watt", "bandwidth_per_watt", "gib_per_watt"),
    "Identity": (
        *("vendor", "segment", "architecture", "year", "part", "compute_capability"),
        *("interconnect", "mig", "form_factor", "devices", "certainty"),
    ),
}
"""Column keys of accelerators except the name, by the title of the group in which they are chosen."""
SYSTEM_COLUMN_GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "Your plan": ("fits",),
    "Price": ("price", "price_kind", "rent"),
    "Accelerators": ("accelerators", "cards", "architecture", "interconnect", "topology", "link"),
    "Memory": ("memory", "memory_each", "bandwidth"),
    "Compute": ("bf16", "fp16"),
    "Power": ("power", "memory_per_kw", "bf16_per_watt"),
    "Identity": ("kind", "vendor", "year", "host_cpu", "certainty"),
}
"""Column keys of systems except the name, by group as above."""
SORT_TITLES: Final[dict[str, str]] = {
    "job_time": "Speed / time, hours per run or seconds per token",
    "job_cost": "Plan's cost, USD",
    "job_cost_tokens": "Cost per million tokens, USD",
    "buy": "Price, USD",
    "year": "Year",
    "memory": "Memory, GiB",
    "usable_memory": "Usable, GiB",
    "bandwidth": "Bandwidth, GB/s",
    "fp32": "FP32, TFLOPS",
    "bf16": "BF16 dense, TFLOPS",
    "fp16": "FP16 dense, TFLOPS",
    "fp8": "FP8 dense, TFLOPS",
    "int8": "INT8 dense, TOPS",
    "fp4": "FP4 dense, TFLOPS",
    "power": "Power, W",
    "price": "Launch price, USD",
    "street": "Street price, USD",
    "used": "Used price, USD",
    "rent": "Rent, USD/h",
    "paid": "Paid, USD",
    "usd_per_gib": "Price per GiB, USD/GiB",
    "usd_per_tflops": "Price per TFLOPS, USD/TFLOPS",
    "bandwidth_per_usd": "Bandwidth per dollar, GB/s/USD",
    "tflops_per_watt": "Rate per watt, TFLOPS/W",
    "ridge_point": "Ridge point, FLOP/byte",
    "gib_per_watt": "Memory per watt, GiB/W",
    "bandwidth_per_watt": "Bandwidth per watt, GB/s/W",
    "devices": "Devices",
}
"""Axis titles of the numeric accelerator columns, by column key."""
