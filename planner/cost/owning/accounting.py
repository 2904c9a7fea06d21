"""Accounting view of owned servers: monthly depreciation, capital, colocation, operations and energy, and break-even.

The decision itself is based on cash flows and resale (`planner.cost.rent_or_buy.cash_flows`); this is the view of other
calculators.
"""

from typing import Final

from pydantic import Field

from planner.base import Spec

HOURS_PER_MONTH: Final = 730.0
"""Hours per month of a year with 365 days, as in github:ewyluda/gpu-price-index."""
_MONTHS: Final = 12


class OwnedServers(Spec):
    """Owned servers from the accounting view."""

    capex_usd: float = Field(ge=0)
    servers: int = Field(ge=1)
    gpus: int = Field(ge=1)
    server_kilowatts: float = Field(gt=0)
    years: float = Field(gt=0)
    capital_rate: float = Field(ge=0, lt=1)
    pue: float = Field(ge=1)
    tariff_usd_per_kwh: float = Field(ge=0)
    colocation_usd_per_kw_month: float = Field(ge=0)
    operations_fraction_per_year: float = Field(ge=0)
    idle_power_fraction: float = Field(ge=0, le=1)


class OwnedMonth(Spec):
    """Accounting cost of one month of owned servers."""

    depreciation_usd: float
    capital_usd: float
    colocation_usd: float
    operations_usd: float
    energy_usd: float
    useful_gpu_hours: float

    @property
    def cash_usd(self) -> float:
        """Return the cash cost: all costs except depreciation."""
        return self.usd - self.depreciation_usd

    @property
    def usd(self) -> float:
        """Return the total accounting cost of the month in USD."""
        return self.depreciation_usd + self.capital_usd + self.colocation_usd + self.operations_usd + self.energy_usd

    @property
    def usd_per_gpu_hour(self) -> float | None:
        """Return the accounting cost per GPU-hour of use, or None without any use."""
        return self.usd / self.useful_gpu_hours if self.useful_gpu_hours else None


def owned_month(servers: OwnedServers, utilization: float) -> OwnedMonth:
    """Return the accounting cost of a month with the servers in use for the fraction `utilization` of the time.

    **Formula** C / (12 Y) + C · r / 2 / 12 + K · colo + C · o / 12 + K · P · 730 · e · (i + (1 − i) · u)
    **Source** github:ewyluda/gpu-price-index, tco
    **Assumes** straight-line depreciation, interest on the average balance, and full power at work.
    """
    kilowatts = servers.servers * servers.server_kilowatts
    idle = servers.idle_power_fraction
    full_energy = kilowatts * servers.pue * HOURS_PER_MONTH * servers.tariff_usd_per_kwh
    return OwnedMonth(
        depreciation_usd=servers.capex_usd / (_MONTHS * servers.years),
        capital_usd=servers.capex_usd * servers.capital_rate / 2 / _MONTHS,
        colocation_usd=kilowatts * servers.colocation_usd_per_kw_month,
        operations_usd=servers.capex_usd * servers.operations_fraction_per_year / _MONTHS,
        energy_usd=full_energy * (idle + (1 - idle) * utilization),
        useful_gpu_hours=servers.gpus * HOURS_PER_MONTH * utilization,
    )


def break_even_utilization(servers: OwnedServers, rent_usd_per_gpu_hour: float) -> float | None:
    """Return the utilization above which owning is cheaper in accounting terms, or None if there is none up to 100 %.

    **Formula** u* = fixed / (p · n · 730 − K · P · 730 · e · (1 − i))
    """
    rest, busy = owned_month(servers, 0.0), owned_month(servers, 1.0)
    slope = rent_usd_per_gpu_hour * servers.gpus * HOURS_PER_MONTH - (busy.energy_usd - rest.energy_usd)
    utilization = rest.usd / slope if slope > 0 else None
    return utilization if utilization is not None and utilization <= 1 else None


def payback_month(servers: OwnedServers, utilization: float, rent_usd_per_gpu_hour: float) -> int | None:
    """Return the first month after which owning has cost less cash than renting, or None within the servers' life.

    **Formula** C + cash · m ≤ rent · m, with all monthly costs but depreciation as cash
    """
    month = owned_month(servers, utilization)
    saved = rent_usd_per_gpu_hour * month.useful_gpu_hours - month.cash_usd
    if saved <= 0:
        return None
    months = -int(-servers.capex_usd / saved // 1)
    return months if months <= _MONTHS * servers.years else None
