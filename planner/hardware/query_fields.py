"""Query fields of accelerators and systems; what both have means the same figure in the same unit."""

import re
from collections.abc import Callable, Mapping
from operator import attrgetter, methodcaller
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
from planner.hardware.system import EquippedSystem
from planner.units import GB, GIB

TERA: Final = 1e12
_NVLINK: Final = re.compile(r"NVLink(?!-C2C)")  # C2C joins a GPU to its processor, not to other GPUs
_OF: Final = FieldFactory[Gpu]()


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
    "used": ("Used price", "median of the known prices of used GPUs"),
    "rent": ("Rent", "lowest on-demand price per GPU and hour"),
}
"""Query fields of prices that are not part of a card's record, with title and help; price kinds are never mixed."""

_PRICE: Final = "what one GPU costs: asked by sellers, else the list price at launch; the list says which"
_VENDORS: Final = "vendor of the GPU, such as NVIDIA, AMD, Intel, Apple, Google or Huawei"
_SEGMENTS: Final = "market segment: consumer, workstation, datacenter, edge, soc or tpu"
_CAPABILITY: Final = "compute capability of NVIDIA GPUs, compared as a version; target of AMD GPUs, such as gfx942"
_CERTAINTY: Final = (
    "certainty of the figures: confirmed (two documents agree), single-source, conflicting, preliminary or yours"
)
_HOURS: Final = "hours for one run of the plan's job; hours per month for services and daily use"
_JOB: Final = "cost of one run of the plan's job, or of one month, at the cheapest comparable offer"
_TOKENS: Final = "cost per million tokens of the plan's job, to compare GPUs that process different amounts per month"

GPU_QUERY_FIELDS: Final[Mapping[str, QueryField[Gpu]]] = {
    field.name: field
    for field in (
        _OF.text("name", "Name", "product name as sold", "name"),
        _OF.text("vendor", "Vendor", _VENDORS, "vendor"),
        _OF.text("segment", "Segment", _SEGMENTS, "segment"),
        _OF.text("architecture", "Architecture", "architecture of the chip, such as Ada Lovelace", "architecture"),
        _OF.number("year", "Year", "", "year of release", "year"),
        _OF.number("memory_gib", "Memory", "GiB", "physical memory of the whole GPU", "memory_bytes", GIB),
        _OF.number("bandwidth", "Bandwidth", "GB/s", "memory bandwidth of the whole GPU", "bandwidth_bytes_per_s", GB),
        *(
            _OF.number(name, title, unit, f"dense {title} rate", methodcaller("ops_per_s", title.lower()), TERA)
            for name, title, unit in (
                ("fp32", "FP32", "TFLOPS"),
                ("bf16_dense", "BF16", "TFLOPS"),
                ("fp16_dense", "FP16", "TFLOPS"),
                ("fp8_dense", "FP8", "TFLOPS"),
                ("int8_dense", "INT8", "TOPS"),
            )
        ),
        _OF.number("power", "Power", "W", "board power of the GPU", "board_power_watts"),
        QueryField("price", "Price", "USD", _PRICE, "number", _price),
        _OF.number("launch_price", "Launch price", "USD", "list price at launch", "launch_price_usd"),
        QueryField("compute_capability", "Capability", "", _CAPABILITY, "version", _compute_capability),
        *(_OF.price(word, title, about) for word, (title, about) in PRICE_FIELDS.items()),
        _OF.number("paid", "Paid", "USD", "price that you paid for your own GPU", "purchase_price_usd"),
        *(_derived_field(figure) for figure in DERIVED_FIGURES.values()),
        _OF.flag("nvlink", "NVLink", "true where NVLink can connect several GPUs", _has_nvlink),
        _OF.flag("mig", "MIG", "true where the GPU can be split into MIG instances", "mig"),
        _OF.number("devices", "Devices", "", "number of devices that frameworks see", "device_count"),
        _OF.flag("laptop", "Laptop", "true for laptop GPUs", "is_laptop"),
        _OF.flag("preliminary", "Preliminary", "true where figures of the GPU may change", "preliminary"),
        _OF.text("certainty", "Certainty", _CERTAINTY, "provenance.certainty"),
        _OF.verdict(),
        _OF.outcome("hours", "Hours of my job", "h", _HOURS, "hours"),
        _OF.outcome("job_cost", "Cost of my job", "USD", _JOB, "job_cost_usd"),
        _OF.outcome("job_cost_tokens", "Cost of a million tokens", "USD", _TOKENS, "usd_per_million_tokens"),
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


RENT_FIELD: Final = "rent"
"""Query field of the rental price, which is not part of a system's record."""
_OF_SYSTEMS: Final = FieldFactory[EquippedSystem]()
_KINDS: Final = "kind of system: server, baseboard, rack, workstation, cloud instance, pod slice or pod"
_TOPOLOGIES: Final = "topology of the links: switch, full mesh, hybrid cube mesh, hypercube, 2D torus or 3D torus"
_LINKS: Final = "link bandwidth of each accelerator to the others, both directions together"
_SYSTEM_CERTAINTY: Final = (
    "certainty of the figures: confirmed (two documents agree), single-source, conflicting or preliminary"
)


def _total_rate_reader(dtype: str) -> Callable[[EquippedSystem], float | None]:
    return lambda machine: machine.total_of_all(None if machine.gpu is None else machine.gpu.ops_per_s(dtype))


def _bandwidth_gb_per_s(machine: EquippedSystem) -> float | None:
    return machine.total_of_all(None if machine.gpu is None else machine.gpu.bandwidth_bytes_per_s)


SYSTEM_FIELDS: Final[Mapping[str, QueryField[EquippedSystem]]] = {
    field.name: field
    for field in (
        _OF_SYSTEMS.text("name", "Name", "product name as sold", "system.name"),
        _OF_SYSTEMS.text("vendor", "Vendor", "vendor of the accelerators: NVIDIA, AMD, Google or AWS", "system.vendor"),
        _OF_SYSTEMS.text("kind", "Kind", _KINDS, "system.kind"),
        _OF_SYSTEMS.text("chip", "Accelerator", "name of the system's accelerator", "chip"),
        _OF_SYSTEMS.text(
            "architecture", "Architecture", "architecture of the accelerators, such as Hopper", "architecture"
        ),
        _OF_SYSTEMS.text("topology", "Topology", _TOPOLOGIES, "system.topology"),
        _OF_SYSTEMS.number("year", "Year", "", "year of release", "year"),
        _OF_SYSTEMS.number("cards", "Number of GPUs", "", "number of accelerators in the system", "system.gpu_count"),
        _OF_SYSTEMS.number(
            "memory_gib", "Memory", "GiB", "memory of all accelerators together", "system.memory_bytes", GIB
        ),
        _OF_SYSTEMS.number(
            "memory_each_gib", "Memory of each", "GiB", "memory of one accelerator", "memory_bytes_each", GIB
        ),
        _OF_SYSTEMS.number(
            "bandwidth", "Bandwidth", "GB/s", "memory bandwidth of all accelerators together", _bandwidth_gb_per_s, GB
        ),
        _OF_SYSTEMS.number(
            "bf16_dense",
            "BF16",
            "TFLOPS",
            "dense BF16 rate of all accelerators together",
            _total_rate_reader("bf16"),
            TERA,
        ),
        _OF_SYSTEMS.number(
            "fp16_dense",
            "FP16",
            "TFLOPS",
            "dense FP16 rate of all accelerators together",
            _total_rate_reader("fp16"),
            TERA,
        ),
        _OF_SYSTEMS.number("link", "Links", "GB/s", _LINKS, "links_bytes_per_s", GB),
        _OF_SYSTEMS.number("power", "Power", "W", "maximum power of the whole system", "system.max_power_watts"),
        _OF_SYSTEMS.number(
            "price",
            "Price",
            "USD",
            "price of the whole system; the field price_kind states the kind of price",
            "system.price_usd",
        ),
        _OF_SYSTEMS.text(
            "price_kind",
            "Kind of price",
            "kind of the price in the field price: list, street, used or estimate",
            "system.price_kind",
        ),
        _OF_SYSTEMS.price(RENT_FIELD, "Rent", "lowest on-demand price of the whole system per hour"),
        _OF_SYSTEMS.flag("preliminary", "Preliminary", "true where figures of the system may change", "preliminary"),
        _OF_SYSTEMS.text("certainty", "Certainty", _SYSTEM_CERTAINTY, "system.provenance.certainty"),
        _OF_SYSTEMS.verdict(),
    )
}
SYSTEM_QUERY_SCHEMA: Final = QuerySchema(
    "systems",
    SYSTEM_FIELDS,
    {
        name: Facet(name, SYSTEM_FIELDS[name].title, chosen, attrgetter(read))
        for name, chosen, read in (
            ("vendor", "vendors", "system.vendor"),
            ("kind", "kinds", "system.kind"),
            ("price_kind", "price_kinds", "system.price_kind"),
            ("topology", "topologies", "system.topology"),
            ("architecture", "architectures", "architecture"),
        )
    },
    ("fits",),
    (RENT_FIELD,),
)
"""Query fields and facets of systems."""
