"""What tables and detail panes show of a whole machine."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from planner.hardware.catalog import HardwareCatalog
from planner.hardware.gpu import Gpu
from planner.hardware.software import SoftwareFact, lacking_formats, target_of
from planner.hardware.system import System
from planner.memory.result import Verdict
from planner.present import format as fmt
from planner.present.build import machine_power_group
from planner.present.card_facts import rent_group
from planner.present.columns import Column, Detail, DetailGroup, numbers, words
from planner.present.fits import fits_rank, fits_tooltip, fits_words
from planner.present.names import CERTAINTY_WORDS
from planner.present.provenance import figure, lacking_detail, provenance_text
from planner.present.system_totals import BF16, FOR_POWER, FP16, TOTALS, ForPower, Total
from planner.units import GIB

if TYPE_CHECKING:
    from planner.cost.market import PriceSpread
    from planner.cost.modes import RentMode
    from planner.plan.system_fits import SystemFit


@dataclass(frozen=True, slots=True)
class SystemRow:
    """A system and the accelerator in it, where the catalog has that; `fit` is the plan's verdict, once asked.

    `lacks` holds the number formats that the accelerator does not compute in, as far as software support has been read.
    """

    system: System
    gpu: Gpu | None
    fit: "SystemFit | None" = None
    lacks: Mapping[str, SoftwareFact] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict | None:
        """Return whether the plan fits on its accelerators; none where that is not known or not asked."""
        return None if self.fit is None or self.fit.fit is None else self.fit.fit.verdict

    @property
    def free_bytes(self) -> int | None:
        """Return what is left on each accelerator, below 0 what is missing; none where that is not known."""
        return None if self.fit is None or self.fit.fit is None else self.fit.fit.free_bytes

    @property
    def unsupported(self) -> str:
        """Return why its accelerators cannot run the plan at all, empty where they can."""
        return "" if self.fit is None or self.fit.fit is None else "; ".join(self.fit.fit.unsupported)

    @property
    def reason(self) -> str:
        """Return why there is no verdict, empty where there is one."""
        return self.unsupported or ("" if self.fit is None else self.fit.reason)

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
    def year(self) -> int | None:
        """Return the year of release."""
        return int(self.system.released[:4]) if self.system.released else None

    @property
    def search_text(self) -> str:
        """Return what a word search looks at: name, id, vendor and accelerator, in lower case."""
        return "\n".join((self.system.name, self.system.id, self.system.vendor, self.accelerators or "")).lower()


def system_rows(
    hardware: HardwareCatalog,
    fits: Mapping[str, "SystemFit"] | None = None,
    software: Iterable[SoftwareFact] = (),
) -> tuple[SystemRow, ...]:
    """Return a row for every system; `fits` holds the plan's verdicts by the system's id, `software` what runs."""
    known = fits or {}
    plain = plain_systems(hardware.systems, hardware, software)
    return tuple(replace(row, fit=known.get(row.id)) for row in plain)


def plain_systems(
    systems: Iterable[System], hardware: HardwareCatalog, software: Iterable[SoftwareFact]
) -> tuple[SystemRow, ...]:
    """Return a row for each of `systems`, on which no plan was judged."""
    lacking = lacking_formats(software)
    return tuple(
        SystemRow(system, gpu, lacks={} if gpu is None else lacking.get(target_of(gpu), {}))
        for system in systems
        for gpu in (hardware.gpu(system.gpu_id) if system.gpu_id else None,)
    )


def systems_sentence(model: str, rows: Sequence[SystemRow]) -> str:
    """Return on how many of `rows` the plan about `model` fits, and which of these has the least memory."""
    total = fmt.plural(len(rows), "system")
    fitting = [row for row in rows if row.verdict in ("fits", "tight")]
    if not fitting:
        return f"{model} does not fit on any of {total} as planned."
    smallest = min(fitting, key=lambda row: row.system.memory_bytes or 0)
    return f"{model} fits on {len(fitting)} of {total} as planned. The smallest is {smallest.system.name}."


def _fits_tooltip(row: SystemRow) -> str:
    count = row.system.gpu_count or 1
    where = f" on each of {fmt.integer(count)}, shared between them as the plan says" if count > 1 else ""
    return fits_tooltip(row.free_bytes, row.reason, where)


def _accelerators_tooltip(row: SystemRow) -> str:
    return "\n".join(part for part in (row.accelerators, _source("gpu_id")(row)) if part)


def _price_tooltip(row: SystemRow) -> str:
    kind = f"{row.system.price_kind} price" if row.system.price_kind else ""
    return "\n".join(part for part in (kind, fmt.date(row.system.price_date, ""), _source("price_usd")(row)) if part)


def _source(field: str) -> Callable[[SystemRow], str]:
    return lambda row: provenance_text(row.system.provenance_of(field))


def _total(total: Total) -> Column[SystemRow]:
    def tooltip(row: SystemRow) -> str:
        source = total.source(row.gpu)
        text = "" if source is None or total.value(row.gpu, row.system.gpu_count) is None else provenance_text(source)
        return "\n".join(part for part in (total.formula(row.gpu, row.system.gpu_count), text) if part)

    return numbers(
        total.key,
        total.title,
        lambda row: total.value(row.gpu, row.system.gpu_count),
        unit=total.unit,
        per_unit=total.per_unit,
        unknown=lambda row: fmt.NONE if total.key in row.lacks else fmt.UNKNOWN,
        width=6,
        shown=total is not FP16,
        tooltip=tooltip,
    )


def _for_power(figure: ForPower) -> Column[SystemRow]:
    return numbers(
        figure.key,
        figure.title,
        lambda row: figure.value(row.system, row.gpu),
        unit=figure.unit,
        show=fmt.significant,
        unknown=fmt.UNKNOWN,
        shown=False,
        tooltip=lambda row: figure.formula(row.system, row.gpu),
    )


SYSTEM_COLUMNS: Final[tuple[Column[SystemRow], ...]] = (
    words("name", "Name", lambda row: row.system.name, width=24, tooltip=lambda row: f"{row.system.name}\n{row.id}"),
    Column(
        "fits",
        "Fits my model",
        lambda row: fits_rank(row.verdict),
        lambda row: fits_words(row.verdict, row.unsupported),
        width=14,
        tooltip=_fits_tooltip,
    ),
    numbers(
        "memory",
        "Memory",
        lambda row: row.system.memory_bytes,
        unit="GiB",
        per_unit=GIB,
        unknown=fmt.UNKNOWN,
        width=8,
        tooltip=lambda row: f"{fmt.exact_bytes(row.system.memory_bytes)}\n{_source('memory_bytes')(row)}",
    ),
    *map(_total, TOTALS),
    numbers(
        "power",
        "Power",
        lambda row: row.system.max_power_watts,
        unit="kW",
        per_unit=1000,
        unknown=fmt.UNKNOWN,
        width=7,
        tooltip=lambda row: f"the most that the whole machine draws\n{_source('max_power_watts')(row)}",
    ),
    numbers(
        "price",
        "Price",
        lambda row: row.system.price_usd,
        show=fmt.money,
        unknown=fmt.UNKNOWN,
        width=9,
        measure=fmt.USD,
        tooltip=_price_tooltip,
    ),
    numbers(
        "year",
        "Year",
        lambda row: row.year,
        show=lambda value: f"{value:.0f}",
        unknown=fmt.UNKNOWN,
        width=7,
        tooltip=lambda row: f"{fmt.date(row.system.released)}\n{_source('released')(row)}",
    ),
    words("accelerators", "Accelerators", lambda row: row.accelerators, width=30, tooltip=_accelerators_tooltip),
    words("vendor", "Vendor", lambda row: row.system.vendor, width=9),
    *map(_for_power, FOR_POWER),
    words("interconnect", "Interconnect", lambda row: row.system.interconnect, width=40, shown=False),
    words("host_cpu", "Processor", lambda row: row.system.host_cpu, width=24, shown=False),
    words(
        "certainty", "Certainty", lambda row: CERTAINTY_WORDS[row.system.provenance.certainty], width=22, shown=False
    ),
)


def system_details(row: SystemRow, rented: "Mapping[RentMode, PriceSpread] | None" = None) -> tuple[DetailGroup, ...]:
    """Return every figure of a system with its source, how sure it is and when it was read; and what feeds it.

    `rented` is what it is rented for, by the way to rent; none while the offers have not been read.
    """
    around = (
        machine_power_group(row.system),
        rent_group(f"To rent, {row.accelerators} together", rented or {}),
    )
    return (
        DetailGroup("Accelerators", _accelerators(row)),
        DetailGroup("Machine", _machine(row.system)),
        DetailGroup("Price", _price(row.system)),
        *(group for group in around if group.details),
    )


def _accelerators(row: SystemRow) -> tuple[Detail, ...]:
    system = row.system
    return (
        _field(system, "gpu_id", "Accelerators", row.accelerators or fmt.UNKNOWN),
        _field(system, "memory_label", "Memory as sold", system.memory_label or fmt.NOT_PUBLISHED),
        _bytes(system, "memory_bytes", "Memory together", system.memory_bytes),
        *(_together(row, total) for total in TOTALS if total is not FP16 or _older(row)),
        _field(system, "interconnect", "Interconnect", system.interconnect or fmt.UNKNOWN),
        _field(system, "performance_label", "Performance as sold", system.performance_label or fmt.NOT_PUBLISHED),
        _field(system, "performance_basis", "What that counts", system.performance_basis or fmt.UNKNOWN),
    )


def _older(row: SystemRow) -> bool:
    """Return whether FP16 is what the accelerators are measured by, for want of BF16."""
    return BF16.value(row.gpu, row.system.gpu_count) is None and FP16.value(row.gpu, row.system.gpu_count) is not None


def _together(row: SystemRow, total: Total) -> Detail:
    """Return a total with its formula, and the source of one accelerator's figure."""
    value, title, source = total.value(row.gpu, row.system.gpu_count), f"{total.title} together", total.source(row.gpu)
    if total.key in row.lacks:
        return lacking_detail(title, row.lacks[total.key])
    if value is None or source is None:
        return Detail(title, fmt.UNKNOWN, basis=total.formula(row.gpu, row.system.gpu_count))
    derived = source.model_copy(update={"basis": "derived", "formula": total.formula(row.gpu, row.system.gpu_count)})
    return figure(title, total.text(value), derived)


def _machine(system: System) -> tuple[Detail, ...]:
    return (
        _field(system, "vendor", "Vendor", system.vendor),
        _field(system, "released", "Released", fmt.date(system.released)),
        _field(system, "host_cpu", "Processor", system.host_cpu or fmt.UNKNOWN),
        _bytes(system, "host_memory_bytes", "Processor memory", system.host_memory_bytes),
        _field(system, "max_power_watts", "Highest power", fmt.power(system.max_power_watts)),
        Detail("Id in the catalog", system.id),
    )


def _price(system: System) -> tuple[Detail, ...]:
    kind = f"Price ({system.price_kind})" if system.price_kind else "Price"
    return (
        _field(system, "price_usd", kind, fmt.money(system.price_usd)),
        _field(system, "price_date", "Price of", fmt.date(system.price_date)),
    )


def _field(system: System, field: str, title: str, text: str) -> Detail:
    return figure(title, text, system.provenance_of(field))


def _bytes(system: System, field: str, title: str, value: int | None) -> Detail:
    exact = "" if value is None else fmt.exact_bytes(value)
    return figure(title, fmt.size(value), system.provenance_of(field), exact)
