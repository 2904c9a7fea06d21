"""Query fields of systems. Fields that accelerators also have mean the same figure in the same unit."""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Final

from planner.hardware.gpu_fields import TERA
from planner.hardware.query import CatalogQuery
from planner.hardware.query_schema import Facet, FieldFactory, QueryField, QuerySchema
from planner.hardware.system import EquippedSystem, PriceKind, SystemKind, Topology
from planner.units import GB, GIB

RENT_FIELD: Final = "rent"
"""Query field of the rental price, which is not part of a system's record."""
_OF: Final = FieldFactory[EquippedSystem]()
_KINDS: Final = "kind of system: server, baseboard, rack, workstation, cloud instance, pod slice or pod"
_TOPOLOGIES: Final = "topology of the links: switch, full mesh, hybrid cube mesh, hypercube, 2D torus or 3D torus"
_LINKS: Final = "link bandwidth of each accelerator to the others, both directions together"
_CERTAINTY: Final = (
    "certainty of the figures: confirmed (two documents agree), single-source, conflicting or preliminary"
)


def _rate_reader(dtype: str) -> Callable[[EquippedSystem], float | None]:
    return lambda machine: machine.total_of_all(None if machine.gpu is None else machine.gpu.ops_per_s(dtype))


def _bandwidth_gb_per_s(machine: EquippedSystem) -> float | None:
    return machine.total_of_all(None if machine.gpu is None else machine.gpu.bandwidth_bytes_per_s)


SYSTEM_FIELDS: Final[Mapping[str, QueryField[EquippedSystem]]] = {
    field.name: field
    for field in (
        _OF.text("name", "Name", "product name as sold", lambda machine: machine.system.name),
        _OF.text(
            "vendor",
            "Vendor",
            "vendor of the accelerators: NVIDIA, AMD, Google or AWS",
            lambda machine: machine.system.vendor,
        ),
        _OF.text("kind", "Kind", _KINDS, lambda machine: machine.system.kind),
        _OF.text("chip", "Accelerator", "name of the system's accelerator", lambda machine: machine.chip),
        _OF.text(
            "architecture",
            "Architecture",
            "architecture of the accelerators, such as Hopper",
            lambda machine: machine.architecture,
        ),
        _OF.text("topology", "Topology", _TOPOLOGIES, lambda machine: machine.system.topology),
        _OF.number("year", "Year", "", "year of release", lambda machine: machine.year),
        _OF.number(
            "cards",
            "Number of cards",
            "",
            "number of accelerators in the system",
            lambda machine: machine.system.gpu_count,
        ),
        _OF.number(
            "memory_gib",
            "Memory",
            "GiB",
            "memory of all accelerators together",
            lambda machine: machine.system.memory_bytes,
            GIB,
        ),
        _OF.number(
            "memory_each_gib",
            "Memory of each",
            "GiB",
            "memory of one accelerator",
            lambda machine: machine.memory_bytes_each,
            GIB,
        ),
        _OF.number(
            "bandwidth", "Bandwidth", "GB/s", "memory bandwidth of all accelerators together", _bandwidth_gb_per_s, GB
        ),
        _OF.number(
            "bf16_dense", "BF16", "TFLOPS", "dense BF16 rate of all accelerators together", _rate_reader("bf16"), TERA
        ),
        _OF.number(
            "fp16_dense", "FP16", "TFLOPS", "dense FP16 rate of all accelerators together", _rate_reader("fp16"), TERA
        ),
        _OF.number("link", "Links", "GB/s", _LINKS, lambda machine: machine.links_bytes_per_s, GB),
        _OF.number(
            "power", "Power", "W", "maximum power of the whole system", lambda machine: machine.system.max_power_watts
        ),
        _OF.number(
            "price",
            "Price",
            "USD",
            "price of the whole system; the field price_kind states the kind of price",
            lambda machine: machine.system.price_usd,
        ),
        _OF.text(
            "price_kind",
            "Kind of price",
            "kind of the price in the field price: list, street, used or estimate",
            lambda machine: machine.system.price_kind,
        ),
        _OF.price(RENT_FIELD, "Rent", "lowest on-demand price of the whole system per hour"),
        _OF.flag(
            "preliminary",
            "Preliminary",
            "true where figures of the system may change",
            lambda machine: machine.preliminary,
        ),
        _OF.text("certainty", "Certainty", _CERTAINTY, lambda machine: machine.system.provenance.certainty),
        _OF.verdict(),
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


class SystemQuery(CatalogQuery):
    """A query of systems; the value None in a facet's selection matches systems with an unknown value."""

    words = SYSTEM_QUERY_SCHEMA
    vendors: tuple[str, ...] = ()
    kinds: tuple[SystemKind, ...] = ()
    price_kinds: tuple[PriceKind | None, ...] = ()
    topologies: tuple[Topology | None, ...] = ()
    architectures: tuple[str | None, ...] = ()
