"""The words that queries of systems know. A word that accelerators have too is of the same figure in the same unit."""

from collections.abc import Callable, Mapping
from typing import Final

from planner.hardware.query import Query
from planner.hardware.system import EquippedSystem, PriceKind, SystemKind, Topology
from planner.hardware.vocabulary import Facet, Known, QueryField, Value, Vocabulary
from planner.units import GB, GIB

_TERA: Final = 1e12
RENT: Final = "rent"
"""The word of the one price that is not in a system's record."""


def _scaled(value: float | None, unit: float) -> float | None:
    return None if value is None else value / unit


def _rate(dtype: str) -> Callable[[EquippedSystem, Known], Value]:
    def read(machine: EquippedSystem, _: Known) -> Value:
        rate = None if machine.gpu is None else machine.gpu.rate(dtype)
        return None if rate is None else _scaled(machine.together(rate.ops_per_s), _TERA)

    return read


def _memory_each(machine: EquippedSystem, _: Known) -> Value:
    return _scaled(machine.memory_bytes_each, GIB)


def _bandwidth(machine: EquippedSystem, _: Known) -> Value:
    each = None if machine.gpu is None else machine.gpu.bandwidth_bytes_per_s
    return _scaled(machine.together(each), GB)


def _text(name: str, title: str, said: str, read: Callable[[EquippedSystem], str | None]) -> QueryField[EquippedSystem]:
    return QueryField(name, title, "", said, "text", lambda machine, _: read(machine))


def _number(
    name: str, title: str, unit: str, said: str, read: Callable[[EquippedSystem, Known], Value]
) -> QueryField[EquippedSystem]:
    return QueryField(name, title, unit, said, "number", read)


SYSTEM_FIELDS: Final[Mapping[str, QueryField[EquippedSystem]]] = {
    field.name: field
    for field in (
        _text("name", "Name", "as sold", lambda machine: machine.system.name),
        _text("vendor", "Vendor", "NVIDIA, AMD, Google or AWS", lambda machine: machine.system.vendor),
        _text(
            "kind",
            "Kind",
            "server, baseboard, rack, workstation, cloud instance, pod slice or pod",
            lambda machine: machine.system.kind,
        ),
        _text(
            "chip",
            "Accelerator",
            "name of its accelerator",
            lambda machine: machine.chip,
        ),
        _text(
            "architecture", "Architecture", "of its accelerators, such as Hopper", lambda machine: machine.architecture
        ),
        _text(
            "topology",
            "Topology",
            "switch, full mesh, hybrid cube mesh, hypercube, 2D torus or 3D torus",
            lambda machine: machine.system.topology,
        ),
        _number("year", "Year", "", "of release", lambda machine, _: machine.year),
        _number(
            "cards", "Number of cards", "", "how many accelerators it has", lambda machine, _: machine.system.gpu_count
        ),
        _number(
            "memory_gib",
            "Memory",
            "GiB",
            "of all accelerators together",
            lambda machine, _: _scaled(machine.system.memory_bytes, GIB),
        ),
        _number("memory_each_gib", "Memory of each", "GiB", "of one accelerator", _memory_each),
        _number("bandwidth", "Bandwidth", "GB/s", "memory bandwidth of all accelerators together", _bandwidth),
        _number("bf16_dense", "BF16", "TFLOPS", "dense BF16 rate of all accelerators together", _rate("bf16")),
        _number("fp16_dense", "FP16", "TFLOPS", "dense FP16 rate of all accelerators together", _rate("fp16")),
        _number(
            "link",
            "Links",
            "GB/s",
            "of each accelerator to the others, both directions together",
            lambda machine, _: _scaled(machine.links_bytes_per_s, GB),
        ),
        _number(
            "power", "Power", "W", "the most that all of it draws", lambda machine, _: machine.system.max_power_watts
        ),
        _number("price", "Price", "USD", "of the kind in price_kind", lambda machine, _: machine.system.price_usd),
        _text(
            "price_kind", "Kind of price", "list, street, used or estimate", lambda machine: machine.system.price_kind
        ),
        _number(
            RENT,
            "Rent",
            "USD",
            "lowest price of all of it for an hour, on demand",
            lambda machine, known: known.price(machine, RENT),
        ),
        QueryField(
            "preliminary",
            "Preliminary",
            "",
            "true where figures may change",
            "flag",
            lambda machine, _: machine.preliminary,
        ),
        _text(
            "certainty",
            "Certainty",
            "confirmed where two documents agree; single-source, conflicting or preliminary",
            lambda machine: machine.system.provenance.certainty,
        ),
        QueryField(
            "fits",
            "Fits",
            "",
            "the plan's verdict: fits, tight or does-not-fit",
            "text",
            lambda machine, known: known.judged(machine).verdict,
        ),
    )
}
SYSTEM_WORDS: Final = Vocabulary(
    "systems",
    SYSTEM_FIELDS,
    {
        facet.name: facet
        for facet in (
            Facet[EquippedSystem]("vendor", "Vendor", "vendors", lambda machine: machine.system.vendor),
            Facet[EquippedSystem]("kind", "Kind", "kinds", lambda machine: machine.system.kind),
            Facet[EquippedSystem](
                "price_kind", "Kind of price", "price_kinds", lambda machine: machine.system.price_kind
            ),
            Facet[EquippedSystem]("topology", "Topology", "topologies", lambda machine: machine.system.topology),
            Facet[EquippedSystem](
                "architecture", "Architecture", "architectures", lambda machine: machine.architecture
            ),
        )
    },
    ("fits",),
    (RENT,),
)
"""What systems are asked for and counted by."""


class SystemQuery(Query):
    """What to look for among systems; None among chosen values finds those of which it is not known."""

    words = SYSTEM_WORDS
    vendors: tuple[str, ...] = ()
    kinds: tuple[SystemKind, ...] = ()
    price_kinds: tuple[PriceKind | None, ...] = ()
    topologies: tuple[Topology | None, ...] = ()
    architectures: tuple[str | None, ...] = ()
