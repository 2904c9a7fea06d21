"""Query fields of accelerators: title, unit, help and the figure that each reads from a record."""

import re
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Final

from planner.hardware.derived import DERIVED_FIGURES, DerivedFigure
from planner.hardware.gpu import Gpu
from planner.hardware.query_schema import (
    Facet,
    FieldFactory,
    QueryContext,
    QueryField,
    QuerySchema,
    Value,
    parse_version,
)
from planner.units import GB, GIB

TERA: Final = 1e12
_NVLINK: Final = re.compile(r"NVLink(?!-C2C)")  # C2C joins a GPU to its processor, not to other GPUs
_OF: Final = FieldFactory[Gpu]()


def _rate_reader(dtype: str) -> Callable[[Gpu], float | None]:
    return lambda gpu: gpu.ops_per_s(dtype)


def _has_nvlink(gpu: Gpu) -> bool | None:
    return None if gpu.interconnect is None else _NVLINK.search(gpu.interconnect) is not None


def _compute_capability(gpu: Gpu, _: QueryContext) -> Value:
    return None if gpu.compute_capability is None else parse_version(gpu.compute_capability) or gpu.compute_capability


def _price(gpu: Gpu, context: QueryContext) -> Value:
    """Return what one card costs if prices are known, else its price at launch."""
    asked = context.price(gpu, "price")
    return gpu.launch_price_usd if asked is None else asked


def _derived_field(figure: DerivedFigure) -> QueryField[Gpu]:
    """Return the query field of a figure that is computed from a card's other figures, such as its price per GiB."""
    at_launch = ", at launch" if figure.has_price else ""
    return _OF.number(figure.key, figure.title, figure.unit, f"{figure.help}{at_launch}", figure.value)


PRICE_FIELDS: Final = {
    "street": ("Street price", "median of the known street prices"),
    "used": ("Used price", "median of the known prices of used cards"),
    "rent": ("Rent", "lowest on-demand price per card and hour"),
}
"""Query fields of prices that are not part of a card's record, with title and help; price kinds are never mixed."""

_PRICE: Final = "what one card costs: asked by sellers, else the list price at launch; the list says which"
_VENDORS: Final = "vendor of the card, such as NVIDIA, AMD, Intel, Apple, Google or Huawei"
_SEGMENTS: Final = "market segment: consumer, workstation, datacenter, edge, soc or tpu"
_CAPABILITY: Final = "compute capability of NVIDIA cards, compared as a version; target of AMD cards, such as gfx942"
_CERTAINTY: Final = (
    "certainty of the figures: confirmed (two documents agree), single-source, conflicting, preliminary or yours"
)
_HOURS: Final = "hours for one run of the plan's job; hours per month for services and daily use"
_JOB: Final = "cost of one run of the plan's job, or of one month, at the cheapest comparable offer"
_TOKENS: Final = "cost per million tokens of the plan's job, to compare cards that process different amounts per month"

GPU_QUERY_FIELDS: Final[Mapping[str, QueryField[Gpu]]] = {
    field.name: field
    for field in (
        _OF.text("name", "Name", "product name as sold", lambda gpu: gpu.name),
        _OF.text("vendor", "Vendor", _VENDORS, lambda gpu: gpu.vendor),
        _OF.text("segment", "Segment", _SEGMENTS, lambda gpu: gpu.segment),
        _OF.text(
            "architecture",
            "Architecture",
            "architecture of the chip, such as Ada Lovelace",
            lambda gpu: gpu.architecture,
        ),
        _OF.number("year", "Year", "", "year of release", lambda gpu: gpu.year),
        _OF.number(
            "memory_gib", "Memory", "GiB", "physical memory of the whole card", lambda gpu: gpu.memory_bytes, GIB
        ),
        _OF.number(
            "bandwidth",
            "Bandwidth",
            "GB/s",
            "memory bandwidth of the whole card",
            lambda gpu: gpu.bandwidth_bytes_per_s,
            GB,
        ),
        _OF.number("fp32", "FP32", "TFLOPS", "dense FP32 rate", _rate_reader("fp32"), TERA),
        _OF.number("bf16_dense", "BF16", "TFLOPS", "dense BF16 rate", _rate_reader("bf16"), TERA),
        _OF.number("fp16_dense", "FP16", "TFLOPS", "dense FP16 rate", _rate_reader("fp16"), TERA),
        _OF.number("fp8_dense", "FP8", "TFLOPS", "dense FP8 rate", _rate_reader("fp8"), TERA),
        _OF.number("int8_dense", "INT8", "TOPS", "dense INT8 rate", _rate_reader("int8"), TERA),
        _OF.number("power", "Power", "W", "board power of the card", lambda gpu: gpu.board_power_watts),
        QueryField("price", "Price", "USD", _PRICE, "number", _price),
        _OF.number("launch_price", "Launch price", "USD", "list price at launch", lambda gpu: gpu.launch_price_usd),
        QueryField("compute_capability", "Capability", "", _CAPABILITY, "version", _compute_capability),
        *(_OF.price(word, title, about) for word, (title, about) in PRICE_FIELDS.items()),
        _OF.number("paid", "Paid", "USD", "price that you paid for your own card", lambda gpu: gpu.purchase_price_usd),
        *(_derived_field(figure) for figure in DERIVED_FIGURES.values()),
        _OF.flag("nvlink", "NVLink", "true where NVLink can connect several cards", _has_nvlink),
        _OF.flag("mig", "MIG", "true where the card can be split into MIG instances", lambda gpu: gpu.mig),
        _OF.number("devices", "Devices", "", "number of devices that frameworks see", lambda gpu: gpu.device_count),
        _OF.flag("laptop", "Laptop", "true for laptop GPUs", lambda gpu: gpu.is_laptop),
        _OF.flag(
            "preliminary", "Preliminary", "true where figures of the card may change", lambda gpu: gpu.preliminary
        ),
        _OF.text("certainty", "Certainty", _CERTAINTY, lambda gpu: gpu.provenance.certainty),
        _OF.verdict(),
        _OF.outcome("hours", "Hours of my job", "h", _HOURS, lambda outcome: outcome.hours),
        _OF.outcome("job_cost", "Cost of my job", "USD", _JOB, lambda outcome: outcome.job_cost_usd),
        _OF.outcome(
            "job_cost_tokens",
            "Cost of a million tokens",
            "USD",
            _TOKENS,
            lambda outcome: outcome.usd_per_million_tokens,
        ),
    )
}
JUDGED_FIELDS: Final = ("fits", "hours", "job_cost", "job_cost_tokens")
"""Query fields that need a plan."""
GPU_QUERY_SCHEMA: Final = QuerySchema(
    "accelerators",
    GPU_QUERY_FIELDS,
    {
        name: Facet(name, GPU_QUERY_FIELDS[name].title, f"{name}s", attrgetter(name))
        for name in ("vendor", "segment", "architecture")
    },
    JUDGED_FIELDS,
    tuple(PRICE_FIELDS),
)
"""Query fields and facets of accelerators."""
