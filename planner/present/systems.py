"""What tables and detail panes show of a whole machine."""

from dataclasses import dataclass
from typing import Final

from planner.hardware.catalog import HardwareCatalog
from planner.hardware.gpu import Gpu
from planner.hardware.system import System
from planner.present import format as fmt
from planner.present.columns import Column, Detail, DetailGroup, numbers, words
from planner.present.names import CERTAINTY_WORDS
from planner.present.provenance import figure, provenance_text
from planner.units import GIB


@dataclass(frozen=True, slots=True)
class SystemRow:
    """A system and the accelerator in it, where the catalog has that."""

    system: System
    gpu: Gpu | None

    @property
    def id(self) -> str:
        """Return the system's id, by which a table remembers what is selected."""
        return self.system.id

    @property
    def accelerators(self) -> str | None:
        """Return `8 × H100 SXM5 80 GB`."""
        name = self.gpu.name if self.gpu else None
        count = self.system.gpu_count
        return fmt.count_of(count, name) if name and count else name

    @property
    def search_text(self) -> str:
        """Return what a word search looks at: name, id, vendor and accelerator, in lower case."""
        return "\n".join((self.system.name, self.system.id, self.system.vendor, self.accelerators or "")).lower()


def system_rows(hardware: HardwareCatalog) -> tuple[SystemRow, ...]:
    """Return a row for every system."""
    return tuple(
        SystemRow(system, hardware.gpu(system.gpu_id) if system.gpu_id else None) for system in hardware.systems
    )


def _year(row: SystemRow) -> int | None:
    return int(row.system.released[:4]) if row.system.released else None


def _price_tooltip(row: SystemRow) -> str:
    kind = f"{row.system.price_kind} price" if row.system.price_kind else ""
    return "\n".join(part for part in (kind, fmt.date(row.system.price_date, ""), _source(row)) if part)


def _source(row: SystemRow) -> str:
    return provenance_text(row.system.provenance)


SYSTEM_COLUMNS: Final[tuple[Column[SystemRow], ...]] = (
    words("name", "Name", lambda row: row.system.name, width=26, tooltip=lambda row: row.system.id),
    words("accelerators", "Accelerators", lambda row: row.accelerators, width=28, tooltip=_source),
    words("vendor", "Vendor", lambda row: row.system.vendor, width=9),
    numbers("year", "Year", _year, show=lambda value: f"{value:.0f}", unknown=fmt.UNKNOWN, width=8),
    numbers(
        "memory",
        "Memory",
        lambda row: row.system.memory_bytes,
        unit="GiB",
        per_unit=GIB,
        width=12,
        tooltip=lambda row: f"{fmt.exact_bytes(row.system.memory_bytes)}\n{_source(row)}",
    ),
    numbers(
        "power", "Highest power", lambda row: row.system.max_power_watts, unit="kW", per_unit=1000, tooltip=_source
    ),
    numbers(
        "price",
        "Price",
        lambda row: row.system.price_usd,
        show=fmt.money,
        width=13,
        measure=fmt.USD,
        tooltip=_price_tooltip,
    ),
    words("interconnect", "Interconnect", lambda row: row.system.interconnect, width=40, shown=False),
    words("host_cpu", "Processor", lambda row: row.system.host_cpu, width=24, shown=False),
    words(
        "certainty", "Certainty", lambda row: CERTAINTY_WORDS[row.system.provenance.certainty], width=22, shown=False
    ),
)


def system_details(row: SystemRow) -> tuple[DetailGroup, ...]:
    """Return every figure of a system with its source, how sure it is and when it was read."""
    return (
        DetailGroup("Accelerators", _accelerators(row)),
        DetailGroup("Machine", _machine(row.system)),
        DetailGroup("Price", _price(row.system)),
    )


def _accelerators(row: SystemRow) -> tuple[Detail, ...]:
    system = row.system
    return (
        _field(system, "Accelerators", row.accelerators or fmt.UNKNOWN),
        _field(system, "Memory as sold", system.memory_label or fmt.NOT_PUBLISHED),
        _bytes(system, "Memory together", system.memory_bytes),
        _field(system, "Interconnect", system.interconnect or fmt.UNKNOWN),
        _field(system, "Performance as sold", system.performance_label or fmt.NOT_PUBLISHED),
        _field(system, "What that counts", system.performance_basis or fmt.UNKNOWN),
    )


def _machine(system: System) -> tuple[Detail, ...]:
    return (
        _field(system, "Vendor", system.vendor),
        _field(system, "Released", fmt.date(system.released)),
        _field(system, "Processor", system.host_cpu or fmt.UNKNOWN),
        _bytes(system, "Processor memory", system.host_memory_bytes),
        _field(system, "Highest power", fmt.power(system.max_power_watts)),
        Detail("Id in the catalog", system.id),
    )


def _price(system: System) -> tuple[Detail, ...]:
    kind = f"Price ({system.price_kind})" if system.price_kind else "Price"
    return (
        _field(system, kind, fmt.money(system.price_usd)),
        _field(system, "Price of", fmt.date(system.price_date)),
    )


def _field(system: System, title: str, text: str) -> Detail:
    return figure(title, text, system.provenance)


def _bytes(system: System, title: str, value: int | None) -> Detail:
    return figure(title, fmt.size(value), system.provenance, "" if value is None else fmt.exact_bytes(value))
