"""Systems (whole machines) as table rows, and totals of several accelerators."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from planner.base import record
from planner.hardware.catalog import HardwareCatalog
from planner.hardware.gpu import Gpu, Provenance
from planner.hardware.software_support import SoftwareFact, software_target, unsupported_formats
from planner.hardware.system import EquippedSystem, System, total_of_equal
from planner.memory.result import Verdict
from planner.present import format as fmt
from planner.units import GIB

if TYPE_CHECKING:
    from planner.cost.card_prices import PriceSpread
    from planner.cost.terms import RentMode
    from planner.plan.placement import SystemFit


@record
class SystemRow(EquippedSystem):
    """A whole machine with its accelerator, if that is in the catalog, the plan's verdict and its rents.

    `fit` is the plan's verdict, if computed. `lacks` holds the number formats that the accelerator does not support,
    if software support is loaded. `rented` holds the rents of the whole system, None until they are loaded.
    """

    fit: "SystemFit | None" = None
    lacks: Mapping[str, SoftwareFact] = field(default_factory=dict)
    rented: "Mapping[RentMode, PriceSpread] | None" = None

    @property
    def verdict(self) -> Verdict | None:
        """Return the plan's memory verdict on the accelerators; None if it is not known or not computed."""
        return None if self.fit is None or self.fit.fit is None else self.fit.fit.verdict

    @property
    def free_bytes(self) -> int | None:
        """Return the bytes that the plan leaves free on each accelerator, negative if they do not suffice; or None."""
        return None if self.fit is None or self.fit.fit is None else self.fit.fit.free_bytes

    @property
    def unsupported(self) -> str:
        """Return why the accelerators cannot run the plan at all; empty if they can."""
        return "" if self.fit is None or self.fit.fit is None else "; ".join(self.fit.fit.unsupported)

    @property
    def reason(self) -> str:
        """Return why the system has no memory verdict; empty if it has one."""
        return self.unsupported or ("" if self.fit is None else self.fit.reason)

    @property
    def on_demand(self) -> "PriceSpread | None":
        """Return the on-demand rental prices of the whole system per hour; None without an offer."""
        return None if self.rented is None else self.rented.get("on-demand")


def system_rows(
    hardware: HardwareCatalog,
    fits: "Mapping[str, SystemFit] | None" = None,
    software: Iterable[SoftwareFact] = (),
    rents: "Mapping[str, Mapping[RentMode, PriceSpread]] | None" = None,
) -> tuple[SystemRow, ...]:
    """Return a row for every system; `fits` holds the plan's verdicts and `rents` the rents, by system id.

    `software` is the known software support of the accelerators.
    """
    known, rented = fits or {}, rents or {}
    plain = system_rows_without_plan(hardware.systems, hardware, software)
    return tuple(replace(row, fit=known.get(row.id), rented=rented.get(row.id)) for row in plain)


def system_rows_without_plan(
    systems: Iterable[System], hardware: HardwareCatalog, software: Iterable[SoftwareFact]
) -> tuple[SystemRow, ...]:
    """Return a table row for each of `systems`; the rows have no verdicts of a plan."""
    lacking = unsupported_formats(software)
    return tuple(
        SystemRow(system, gpu, lacks={} if gpu is None else lacking.get(software_target(gpu), {}))
        for system in systems
        for gpu in (hardware.machine(system).gpu,)
    )


_WATTS_PER_KW: Final = 1000.0
_TERA: Final = 1e12


@dataclass(frozen=True, slots=True)
class AcceleratorTotal:
    """A total over equal accelerators: their number × the figure of one, in base units.

    It is shown in `unit`, of `per_unit` base units. `one` formats the figure of one accelerator, and the total if
    there is no unit; `field` is the record's field that the figure comes from.
    """

    key: str
    title: str
    unit: str
    per_unit: float
    each: Callable[[Gpu], float | None]
    one: Callable[[float], str]
    field: str

    def value(self, gpu: Gpu | None, count: int | None) -> float | None:
        """Return the total over `count` cards like `gpu`, or None if the number or a single figure is unknown."""
        return total_of_equal(count, None if gpu is None else self.each(gpu))

    def text(self, value: float) -> str:
        """Return a total with its unit."""
        return fmt.quantity(value / self.per_unit, self.unit) if self.unit else self.one(value)

    def formula(self, gpu: Gpu | None, count: int | None) -> str:
        """Return the total's formula in numbers, or why the total is not known."""
        if gpu is None or count is None:
            return "the catalog does not list the accelerators of this system"
        each = self.each(gpu)
        if each is None:
            return f"the catalog does not have this figure for one {gpu.name}"
        return f"{fmt.count_of(count, self.one(each))} ({gpu.name})"

    def source(self, gpu: Gpu | None) -> Provenance | None:
        """Return the provenance of the figure of one accelerator."""
        return None if gpu is None else gpu.provenance_of(self.field)


def _rate_total(dtype: str) -> AcceleratorTotal:
    """Return the total of the arithmetic rate in one number format."""
    title = f"{dtype.upper()} dense"
    return AcceleratorTotal(dtype, title, "PFLOPS", 1e15, lambda gpu: gpu.ops_per_s(dtype), fmt.rate, f"rate.{dtype}")


MEMORY: Final = AcceleratorTotal(
    "memory",
    "Memory",
    "GiB",
    GIB,
    lambda gpu: gpu.memory_bytes,
    lambda value: fmt.quantity(value / GIB, "GiB"),
    "memory_bytes",
)
BANDWIDTH: Final = AcceleratorTotal(
    "bandwidth",
    "Bandwidth",
    "TB/s",
    1e12,
    lambda gpu: gpu.bandwidth_bytes_per_s,
    fmt.bandwidth,
    "bandwidth_bytes_per_s",
)
BF16: Final = _rate_total("bf16")
FP16: Final = _rate_total("fp16")
"""Total FP16 rate, which is shown for machines older than BF16."""
CARDS_POWER: Final = AcceleratorTotal(
    "total_power", "Power", "W", 1, lambda gpu: gpu.drawn_watts, fmt.power, "board_power_watts"
)
PAID: Final = AcceleratorTotal(
    "total_price", "Price", "", 1, lambda gpu: gpu.purchase_price_usd, fmt.money, "purchase_price_usd"
)
AT_LAUNCH: Final = AcceleratorTotal(
    "total_price", "Price", "", 1, lambda gpu: gpu.launch_price_usd, fmt.money, "launch_price_usd"
)
TOTALS: Final = (BANDWIDTH, BF16, FP16)
"""Totals that the catalog does not list for systems, computed from the figures of one accelerator."""


@dataclass(frozen=True, slots=True)
class PerPowerFigure:
    """A figure of a system per watt of its maximum power.

    `numerator` names what is divided by the power; `scaled` returns it in the unit `over`.
    """

    key: str
    title: str
    unit: str
    numerator: str
    over: str
    scaled: Callable[[System, Gpu | None], float | None]
    per_watts: float

    def value(self, system: System, gpu: Gpu | None) -> float | None:
        """Return the figure in `unit`, or None if the numerator or the power is not known."""
        over, watts = self.scaled(system, gpu), system.max_power_watts
        return None if over is None or watts is None else over / watts * self.per_watts

    def formula(self, system: System, gpu: Gpu | None) -> str:
        """Return the figure's formula in numbers, or which input is missing."""
        over, watts = self.scaled(system, gpu), system.max_power_watts
        if over is None or watts is None:
            inputs = ((self.numerator, over), ("the power of the machine", watts))
            unknown = [name for name, amount in inputs if amount is None]
            return f"needs {' and '.join(unknown)}, which {'is' if len(unknown) == 1 else 'are'} unknown"
        return f"{fmt.quantity(over, self.over)} ÷ {fmt.power(watts)} of the whole machine"


def _memory_gib(system: System, _gpu: Gpu | None) -> float | None:
    return None if system.memory_bytes is None else system.memory_bytes / GIB


def _bf16_tflops(system: System, gpu: Gpu | None) -> float | None:
    total = BF16.value(gpu, system.gpu_count)
    return None if total is None else total / _TERA


PER_POWER_FIGURES: Final = (
    PerPowerFigure(
        "memory_per_kw", "Memory per kW", "GiB/kW", "the memory of the accelerators", "GiB", _memory_gib, _WATTS_PER_KW
    ),
    PerPowerFigure(
        "bf16_per_watt",
        "BF16 dense per watt",
        "TFLOPS/W",
        "the dense BF16 rate of the accelerators",
        "TFLOPS",
        _bf16_tflops,
        1.0,
    ),
)
"""Figures per watt of the whole system's maximum power, host and cooling included."""
