"""Cards and systems as JSON and CSV records: field names with units, exact values and sources."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from planner.base import Spec
from planner.cost.card_prices import CardPrices, PriceSpread
from planner.cost.terms import RentMode
from planner.hardware.derived import DERIVED_FIGURES, derived_figures
from planner.hardware.gpu import Gpu, Provenance
from planner.hardware.power import machine_figures, smallest_circuit
from planner.hardware.published_speeds import PublishedSpeed
from planner.hardware.software_support import FeatureSupport
from planner.hardware.system import EquippedSystem, System, total_of_equal
from planner.present.catalog.gpu_columns import DTYPE_TITLES
from planner.present.catalog.gpu_row import GpuRow, JobSummary
from planner.present.catalog.system_row import AT_LAUNCH, BANDWIDTH, BF16, CARDS_POWER, FP16, MEMORY, SystemRow

if TYPE_CHECKING:  # a list compares nothing, and is quicker without
    from planner.present.catalog.comparison import ComparisonEntry

DERIVED_NAMES: Final[Mapping[str, str]] = {
    **{key: key for key in DERIVED_FIGURES},
    "ridge_point": "ridge_point_flop_per_byte",
    "bandwidth_per_usd": "bandwidth_gb_per_s_per_usd",
    "bandwidth_per_watt": "bandwidth_gb_per_s_per_watt",
}
"""Field names of the derived figures, with their units, by query word."""
_LACKING: Final = {"feature", "note", "source", "as_of"}


def derived_fields(gpu: Gpu) -> dict[str, float | None]:
    """Return the derived figures at the launch price; None where an input is unknown."""
    return {DERIVED_NAMES[key]: value for key, value in derived_figures(gpu).items()}


def price_fields(prices: CardPrices | None, count: int = 1) -> dict[str, object]:
    """Return the prices of `count` cards in US dollars: median street and used prices, and the lowest on-demand rent.

    Each comes with the source and the day of its newest price; None where the catalog has no such price.
    """
    bought = {} if prices is None else prices.bought
    rented = None if prices is None else prices.rented.get("on-demand")
    fields: dict[str, object] = {}
    for kind in ("street", "used"):
        spread = bought.get(kind)
        fields[f"{kind}_price_usd"] = None if spread is None else spread.median_usd * count
        fields[f"{kind}_price_source"] = (
            None if spread is None else _dated_source(spread.latest.source, spread.latest.day)
        )
    return fields | rent_fields(rented, count)


def rent_fields(rented: PriceSpread | None, count: int = 1) -> dict[str, object]:
    """Return the lowest hourly price of `count` cards with its source and day; None without an offer."""
    return {
        "rent_usd_per_hour": None if rented is None else rented.low.price_usd * count,
        "rent_source": None if rented is None else _dated_source(rented.low.source, rented.low.day),
    }


def card_facts(
    gpu: Gpu, prices: CardPrices, software: Iterable[FeatureSupport], speeds: Iterable[PublishedSpeed]
) -> dict[str, object]:
    """Return what a card's record does not contain: derived figures, prices, software, measured speeds."""
    return {
        "derived": derived_fields(gpu) | _derived_by_kind(gpu, prices),
        "prices": {
            "bought": {kind: _price_range_object(spread, "usd") for kind, spread in prices.bought.items()},
            "rented": _rent_ranges(prices.rented),
        },
        "software": [{"title": support.title, **support._asdict()} for support in software],
        "speeds": [speed.model_dump(mode="json") for speed in speeds],
    }


def system_facts(row: SystemRow) -> dict[str, object]:
    """Return what a system's record does not contain: totals, unsupported formats, rents, power and cooling.

    `power` is None if the machine's power is not known.
    """
    system = row.system
    return {
        "totals": {"memory_bytes": system.memory_bytes, **accelerator_fields(row.gpu, system.gpu_count)},
        "each": per_accelerator_fields(row),
        "lacks": [fact.model_dump(mode="json", include=_LACKING) for fact in row.lacks.values()],
        "prices": {"rented": _rent_ranges(row.rented or {})},
        "power": _power_object(system),
    }


def comparison_totals(entry: "ComparisonEntry") -> dict[str, object]:
    """Return the totals over all accelerators of an entry, and over its machines if it is a system."""
    system, gpu = None if entry.system is None else entry.system.system, None if entry.row is None else entry.row.gpu
    return {
        "memory_bytes": MEMORY.value(gpu, entry.count),
        **accelerator_fields(gpu, entry.count),
        "cards_power_watts": CARDS_POWER.value(gpu, entry.count),
        "launch_price_usd": AT_LAUNCH.value(gpu, entry.count),
        **price_fields(None if entry.row is None else entry.row.prices, entry.count),
        "system_power_watts": total_of_equal(entry.machines, None if system is None else system.max_power_watts),
        "system_price_usd": total_of_equal(entry.machines, None if system is None else system.price_usd),
    }


def accelerator_fields(gpu: Gpu | None, count: int | None) -> dict[str, object]:
    """Return the total memory bandwidth and 16-bit rates of `count` accelerators."""
    return {
        "bandwidth_bytes_per_s": BANDWIDTH.value(gpu, count),
        "bf16_ops_per_s": BF16.value(gpu, count),
        "fp16_ops_per_s": FP16.value(gpu, count),
    }


def per_accelerator_fields(machine: EquippedSystem | None) -> dict[str, object]:
    """Return the architecture, the memory and the link bandwidth of one of a system's accelerators."""
    return {
        "architecture": None if machine is None else machine.architecture,
        "memory_bytes_each": None if machine is None else machine.memory_bytes_each,
        "links_bytes_per_s_each": None if machine is None else machine.links_bytes_per_s,
    }


def _derived_by_kind(gpu: Gpu, prices: CardPrices) -> dict[str, float | None]:
    """Return the derived figures that involve a price, at the median of each known kind of price."""
    return {
        f"{DERIVED_NAMES[key]}_{kind}": figure.value(gpu, spread.median_usd)
        for key, figure in DERIVED_FIGURES.items()
        for kind, spread in prices.bought.items()
        if figure.has_price and kind != "list"
    }


def _power_object(system: System) -> dict[str, object] | None:
    """Return the power supply and cooling of a system, or None if its power is not known."""
    if system.max_power_watts is None:
        return None
    circuit = smallest_circuit(system.max_power_watts)
    return {"circuit": circuit.name, "figures": [asdict(step) for step in machine_figures(system, circuit)]}


def _rent_ranges(rented: Mapping[RentMode, PriceSpread]) -> dict[str, object]:
    """Return the range of rental prices by rental mode."""
    return {mode: _price_range_object(spread, "usd_per_hour") for mode, spread in rented.items()}


def _price_range_object(spread: PriceSpread, unit: str) -> dict[str, object]:
    """Return a range of prices with its dates and sources, for JSON."""
    return {
        f"low_{unit}": spread.low.price_usd,
        f"median_{unit}": spread.median_usd,
        f"high_{unit}": spread.high.price_usd,
        "points": [
            {f"price_{unit}": point.price_usd}
            | {name: value for name, value in asdict(point).items() if name != "price_usd"}
            for point in spread.points
        ],
    }


def _dated_source(source: str, day: str) -> str:
    """Return a source with its date."""
    return f"{source}, {day}" if day else source


_NESTED: Final = {"rates", "provenance", "figure_notes", "notes", "aliases"}
_SOURCES: Final = ("source", "basis", "certainty", "as_of", "other_sources", "notes")
_GPU_PLAN: Final = (
    *("plan_verdict", "plan_free_bytes"),
    *("plan_job_hours", "plan_job_cost_usd", "plan_job_cost_source"),
)
_SYSTEM_PLAN: Final = ("plan_verdict", "plan_free_bytes_each", "plan_reason")


def _record_fields(kind: type[Spec]) -> tuple[str, ...]:
    """Return the field names of a record class, without nested records."""
    return tuple(name for name in kind.model_fields if name not in _NESTED)


GPU_FIELDS: Final = (
    *_record_fields(Gpu),
    *(f"{dtype}_ops_per_s" for dtype in DTYPE_TITLES),
    *price_fields(None),
    *DERIVED_NAMES.values(),
    *_GPU_PLAN,
    *_SOURCES,
)
"""Names of the fields in `gpu_fields`, for a CSV header even without any card."""
SYSTEM_FIELDS: Final = (
    *_record_fields(System),
    *per_accelerator_fields(None),
    *accelerator_fields(None, None),
    *rent_fields(None),
    *_SYSTEM_PLAN,
    *_SOURCES,
)
"""Names of the fields in `system_fields`, for a CSV header."""


def gpu_fields(row: GpuRow) -> dict[str, object]:
    """Return a card's figures by field name, such as `bf16_ops_per_s`, with prices by kind and sources.

    The plan's verdict and job are None without a plan.
    """
    gpu = row.gpu
    job = row.job
    plan = (row.verdict, row.free_bytes, *(_job_values(job) if job else (None, None, None)))
    rates = {dtype: gpu.rate(dtype) for dtype in DTYPE_TITLES}
    other = {note.field: note.provenance for note in gpu.figure_notes}
    other |= {f"{dtype}_ops_per_s": rate.provenance for dtype, rate in rates.items() if rate and rate.provenance}
    return {
        **gpu.model_dump(exclude=_NESTED),
        **{f"{dtype}_ops_per_s": rate.ops_per_s if rate else None for dtype, rate in rates.items()},
        **price_fields(row.prices),
        **derived_fields(gpu),
        **dict(zip(_GPU_PLAN, plan, strict=True)),
        **_source_fields(gpu.provenance, other, gpu.notes),
    }


def system_fields(row: SystemRow) -> dict[str, object]:
    """Return a system's figures by field name, with its accelerators, its rent, the plan's verdict and sources."""
    system = row.system
    other = {note.field: note.provenance for note in system.figure_notes}
    return {
        **system.model_dump(exclude=_NESTED),
        **per_accelerator_fields(row),
        **accelerator_fields(row.gpu, system.gpu_count),
        **rent_fields(row.on_demand),
        **dict(zip(_SYSTEM_PLAN, (row.verdict, row.free_bytes, row.reason), strict=True)),
        **_source_fields(system.provenance, other, system.notes),
    }


def _source_fields(main: Provenance, other: Mapping[str, Provenance], notes: Sequence[str]) -> dict[str, object]:
    """Return the fields on sources: source of the record, sources of single figures, and notes."""
    others = "; ".join(f"{field}: {_provenance_line(provenance)}" for field, provenance in other.items())
    texts = (main.source, main.basis, main.certainty, main.as_of, others, "; ".join(notes))
    return dict(zip(_SOURCES, texts, strict=True))


def _job_values(job: JobSummary) -> tuple[float, float | None, str]:
    """Return a job's hours, cost in US dollars, and the source of the cost."""
    return job.hours, job.usd, "; ".join(job.cost_origin.splitlines())


def _provenance_line(provenance: Provenance) -> str:
    parts = (provenance.basis, provenance.formula, provenance.source, provenance.certainty, provenance.as_of)
    return ", ".join(dict.fromkeys(part for part in parts if part))
