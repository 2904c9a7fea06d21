"""Table columns of systems (whole machines)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from planner.present import format as fmt
from planner.present.catalog.gpu_columns import fits_column, rent_column
from planner.present.catalog.system_row import (
    FP16,
    PER_POWER_FIGURES,
    TOTALS,
    AcceleratorTotal,
    PerPowerFigure,
    SystemRow,
)
from planner.present.columns import Column, number_column, provenance_text, text_column
from planner.present.memory.verdict import margin_text
from planner.present.names import CERTAINTY_TITLES
from planner.units import GB, GIB


def _fits_tooltip(row: SystemRow) -> str:
    """Return why there is no memory verdict, or the free memory on each accelerator."""
    count = row.system.gpu_count or 1
    where = f" on each of {fmt.integer(count)}, shared as in the plan or by its software" if count > 1 else ""
    return row.reason if row.reason or row.free_bytes is None else f"{margin_text(row.free_bytes)}{where}"


def _accelerators_tooltip(row: SystemRow) -> str:
    return "\n".join(part for part in (row.accelerators, _system_source_reader("gpu_id")(row)) if part)


def _dated_year_tooltip(row: SystemRow) -> str:
    """Return the date of the first sale, else that of the announcement, with its source."""
    field = "announced" if row.system.released is None else "released"
    return f"{fmt.date(getattr(row.system, field))}\n{_system_source_reader(field)(row)}"


def _accelerator_source_reader(field: str) -> Callable[[SystemRow], str]:
    """Return a function that gives the source of a field in the record of one accelerator."""
    return lambda row: "" if row.gpu is None else provenance_text(row.gpu.provenance_of(field))


def _accelerator_memory_tooltip(row: SystemRow) -> str:
    exact = "" if row.memory_bytes_each is None else fmt.exact_bytes(row.memory_bytes_each)
    return "\n".join(part for part in (exact, _accelerator_source_reader("memory_bytes")(row)) if part)


def _price_tooltip(row: SystemRow) -> str:
    kind = f"{row.system.price_kind} price" if row.system.price_kind else ""
    return "\n".join(
        part for part in (kind, fmt.date(row.system.price_date, ""), _system_source_reader("price_usd")(row)) if part
    )


def _system_source_reader(field: str) -> Callable[[SystemRow], str]:
    """Return a function that gives the source of a field in the system's record."""
    return lambda row: provenance_text(row.system.provenance_of(field))


def _total_column(total: AcceleratorTotal) -> Column[SystemRow]:
    """Return the column of a total over a system's accelerators."""

    def total_tooltip(row: SystemRow) -> str:
        source = total.source(row.gpu)
        text = "" if source is None or total.value(row.gpu, row.system.gpu_count) is None else provenance_text(source)
        return "\n".join(part for part in (total.formula(row.gpu, row.system.gpu_count), text) if part)

    return number_column(
        total.key,
        total.title,
        lambda row: total.value(row.gpu, row.system.gpu_count),
        unit=total.unit,
        per_unit=total.per_unit,
        unknown=lambda row: fmt.NOT_SUPPORTED if total.key in row.lacks else fmt.UNKNOWN,
        width=6,
        shown=total is not FP16,
        tooltip=total_tooltip,
        about=f"{total.title} of all accelerators together",
    )


def _per_power_column(figure: PerPowerFigure) -> Column[SystemRow]:
    """Return the column of a figure per watt of a system's maximum power."""
    return number_column(
        figure.key,
        figure.title,
        lambda row: figure.value(row.system, row.gpu),
        unit=figure.unit,
        show=fmt.significant,
        unknown=fmt.UNKNOWN,
        shown=False,
        tooltip=lambda row: figure.formula(row.system, row.gpu),
        about=f"{figure.title}: of all accelerators, at the machine's maximum power",
    )


_RENT: Final[Column[SystemRow]] = replace(
    rent_column(
        lambda row: row.on_demand,
        "The catalog has no rental offer for a machine with this many accelerators.",
        " per hour",
    ),
    shown=True,
)
SYSTEM_COLUMNS: Final[tuple[Column[SystemRow], ...]] = (
    text_column(
        "name",
        "Name",
        lambda row: row.system.name,
        width=25,
        tooltip=lambda row: f"{row.system.name}\n{row.id}",
        about="Name of the system",
    ),
    fits_column(
        lambda row: row.verdict,
        lambda row: row.unsupported,
        _fits_tooltip,
        "Whether the plan fits on the accelerators of one such machine",
    ),
    number_column(
        "memory",
        "Memory",
        lambda row: row.system.memory_bytes,
        unit="GiB",
        per_unit=GIB,
        unknown=fmt.UNKNOWN,
        width=8,
        tooltip=lambda row: f"{fmt.exact_bytes(row.system.memory_bytes)}\n{_system_source_reader('memory_bytes')(row)}",
        about="Memory of all accelerators together",
    ),
    *map(_total_column, TOTALS),
    number_column(
        "power",
        "Power",
        lambda row: row.system.max_power_watts,
        unit="kW",
        per_unit=1000,
        unknown=fmt.UNKNOWN,
        width=7,
        tooltip=lambda row: f"maximum power of the whole machine\n{_system_source_reader('max_power_watts')(row)}",
        about="Most power that the system draws",
    ),
    number_column(
        "price",
        "Price",
        lambda row: row.system.price_usd,
        show=fmt.money,
        unknown=fmt.UNKNOWN,
        width=9,
        measure=fmt.USD,
        tooltip=_price_tooltip,
        about="Price of the whole system",
    ),
    number_column(
        "year",
        "Year",
        lambda row: row.year,
        show=lambda value: f"{value:.0f}",
        unknown=fmt.UNKNOWN,
        width=7,
        tooltip=_dated_year_tooltip,
        about="Year of release",
    ),
    _RENT,
    text_column(
        "accelerators",
        "Accelerators",
        lambda row: row.accelerators,
        width=30,
        tooltip=_accelerators_tooltip,
        about="Number and kind of accelerators inside",
    ),
    text_column(
        "kind",
        "Kind",
        lambda row: row.system.kind,
        width=13,
        tooltip=_system_source_reader("kind"),
        about="Workstation, server, rack or cloud instance",
    ),
    text_column("vendor", "Vendor", lambda row: row.system.vendor, width=9, about="Company that sells the system"),
    text_column(
        "architecture",
        "Architecture",
        lambda row: row.architecture,
        width=16,
        shown=False,
        about="Generation of the accelerators",
    ),
    number_column(
        "cards",
        "Number of GPUs",
        lambda row: row.system.gpu_count,
        show=lambda value: fmt.integer(int(value)),
        unknown=fmt.UNKNOWN,
        width=8,
        shown=False,
        tooltip=_system_source_reader("gpu_count"),
        about="Number of accelerators inside",
    ),
    number_column(
        "memory_each",
        "Memory each",
        lambda row: row.memory_bytes_each,
        unit="GiB",
        per_unit=GIB,
        unknown=fmt.UNKNOWN,
        shown=False,
        tooltip=_accelerator_memory_tooltip,
        about="Memory of each accelerator",
    ),
    number_column(
        "link",
        "Links each",
        lambda row: row.links_bytes_per_s,
        unit="GB/s",
        per_unit=GB,
        unknown=fmt.UNKNOWN,
        shown=False,
        tooltip=_accelerator_source_reader("interconnect"),
        about="Bandwidth of the links between the accelerators, of each of them",
    ),
    text_column(
        "topology",
        "Topology",
        lambda row: row.system.topology,
        width=18,
        shown=False,
        tooltip=_system_source_reader("topology"),
        about="How the accelerators are joined",
    ),
    *map(_per_power_column, PER_POWER_FIGURES),
    text_column(
        "price_kind",
        "Price kind",
        lambda row: row.system.price_kind,
        width=13,
        shown=False,
        about="Where the price comes from: list price, street price or estimate",
    ),
    text_column(
        "interconnect",
        "Interconnect",
        lambda row: row.system.interconnect,
        width=40,
        shown=False,
        about="Links between the accelerators",
    ),
    text_column(
        "host_cpu",
        "Processor",
        lambda row: row.system.host_cpu,
        width=24,
        shown=False,
        about="Main processors of the system",
    ),
    text_column(
        "certainty",
        "Sources",
        lambda row: CERTAINTY_TITLES[row.system.provenance.certainty],
        width=22,
        shown=False,
        about="How well sources confirm the system's figures",
    ),
)
