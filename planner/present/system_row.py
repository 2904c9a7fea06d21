"""A whole machine as a row of a table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from planner.hardware.catalog import HardwareCatalog
from planner.hardware.software import SoftwareFact, lacking_formats, target_of
from planner.hardware.system import EquippedSystem, System
from planner.memory.result import Verdict
from planner.present import format as fmt

if TYPE_CHECKING:
    from planner.cost.market import PriceSpread
    from planner.cost.terms import RentMode
    from planner.plan.placement import SystemFit


@dataclass(frozen=True, slots=True)
class SystemRow(EquippedSystem):
    """A system, its accelerator where the catalog has that, and what is known beside both.

    `fit` is the plan's verdict, once asked. `lacks` holds the number formats that the accelerator does not compute in,
    as far as software support has been read. `rented` is what all of it is rented for, none while that is not read.
    """

    fit: "SystemFit | None" = None
    lacks: Mapping[str, SoftwareFact] = field(default_factory=dict)
    rented: "Mapping[RentMode, PriceSpread] | None" = None

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
    def on_demand(self) -> "PriceSpread | None":
        """Return what all of it is rented for by the hour, on demand."""
        return None if self.rented is None else self.rented.get("on-demand")


def system_rows(
    hardware: HardwareCatalog,
    fits: "Mapping[str, SystemFit] | None" = None,
    software: Iterable[SoftwareFact] = (),
    rents: "Mapping[str, Mapping[RentMode, PriceSpread]] | None" = None,
) -> tuple[SystemRow, ...]:
    """Return a row for every system; by the system's id, `fits` holds the plan's verdicts and `rents` what it costs.

    `software` is what runs on the accelerators.
    """
    known, rented = fits or {}, rents or {}
    plain = plain_systems(hardware.systems, hardware, software)
    return tuple(replace(row, fit=known.get(row.id), rented=rented.get(row.id)) for row in plain)


def plain_systems(
    systems: Iterable[System], hardware: HardwareCatalog, software: Iterable[SoftwareFact]
) -> tuple[SystemRow, ...]:
    """Return a row for each of `systems`, on which no plan was judged."""
    lacking = lacking_formats(software)
    return tuple(
        SystemRow(system, gpu, lacks={} if gpu is None else lacking.get(target_of(gpu), {}))
        for system in systems
        for gpu in (hardware.machine(system).gpu,)
    )


def systems_sentence(model: str, rows: Sequence[SystemRow]) -> str:
    """Return on how many of `rows` the plan about `model` fits, and which of these has the least memory."""
    total = fmt.plural(len(rows), "system")
    fitting = [row for row in rows if row.verdict in ("fits", "tight")]
    if not fitting:
        return f"{model} does not fit on any of {total} as planned."
    smallest = min(fitting, key=lambda row: row.system.memory_bytes or 0)
    return f"{model} fits on {len(fitting)} of {total} as planned. The smallest is {smallest.system.name}."
