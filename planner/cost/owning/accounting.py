"""Value of owned hardware: resale and depreciation, and the accounting view with monthly costs and break-even.

The decision itself is based on cash flows and resale (`planner.cost.rent_or_buy.cash_flows`); the accounting view is
that of other calculators.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from pydantic import Field

from planner.base import Spec
from planner.cost.figure import NINETY_PERCENT, USER_SOURCE, Constant
from planner.cost.terms import DepreciationMethod
from planner.units import MONTHS_PER_YEAR

ACCOUNTING_HOURS_PER_MONTH: Final = 730.0
"""Hours per month of a year with 365 days, as in github:ewyluda/gpu-price-index."""


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
    full_energy = kilowatts * servers.pue * ACCOUNTING_HOURS_PER_MONTH * servers.tariff_usd_per_kwh
    return OwnedMonth(
        depreciation_usd=servers.capex_usd / (MONTHS_PER_YEAR * servers.years),
        capital_usd=servers.capex_usd * servers.capital_rate / 2 / MONTHS_PER_YEAR,
        colocation_usd=kilowatts * servers.colocation_usd_per_kw_month,
        operations_usd=servers.capex_usd * servers.operations_fraction_per_year / MONTHS_PER_YEAR,
        energy_usd=full_energy * (idle + (1 - idle) * utilization),
        useful_gpu_hours=servers.gpus * ACCOUNTING_HOURS_PER_MONTH * utilization,
    )


def break_even_utilization(servers: OwnedServers, rent_usd_per_gpu_hour: float) -> float | None:
    """Return the utilization above which owning is cheaper in accounting terms, or None if there is none up to 100 %.

    **Formula** u* = fixed / (p · n · 730 − K · P · 730 · e · (1 − i))
    """
    rest, busy = owned_month(servers, 0.0), owned_month(servers, 1.0)
    slope = rent_usd_per_gpu_hour * servers.gpus * ACCOUNTING_HOURS_PER_MONTH - (busy.energy_usd - rest.energy_usd)
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
    return months if months <= MONTHS_PER_YEAR * servers.years else None


MACRS_5_YEAR: Final = (0.2, 0.32, 0.192, 0.1152, 0.1152, 0.0576)
"""Fractions of the cost that are written off in each tax year.

**Source** IRS, MACRS half-year table for five-year property, by a secondary transcription; US tax only.
"""
DECLINE_ORDERS_PER_YEAR: Final = 0.14
"""**Source** Epoch AI, training-cost-trends; arXiv 2405.21015: orders of magnitude a year, ×0.7244."""


def yearly_depreciation(cost_usd: float, method: DepreciationMethod, years: float, horizon_years: int) -> list[float]:
    """Return the depreciation in each of the first `horizon_years` years, at most the cost in total.

    **Formula** straight line: C / Y until Y; declining: C · (10^−0.14(t−1) − 10^−0.14t); MACRS: its table.
    """
    if method == "straight-line":
        return [cost_usd / years * max(min(years - year, 1.0), 0.0) for year in range(horizon_years)]
    if method == "declining":
        return [
            cost_usd * (remaining_value_fraction(year) - remaining_value_fraction(year + 1))
            for year in range(horizon_years)
        ]
    shares = (*MACRS_5_YEAR, *(0.0,) * horizon_years)
    return [cost_usd * share for share in shares[:horizon_years]]


def remaining_value_fraction(years: float) -> float:
    """Return the fraction of the value that is left after `years` on the declining trend."""
    return float(10 ** (-DECLINE_ORDERS_PER_YEAR * years))


def value_lost_per_hour(value_usd: float, network_share: float = 0.0) -> float:
    """Return the hourly loss of value, in USD, of hardware that is worth `value_usd` now and follows the trend.

    **Formula** V · 0.14 · ln 10 / 8,766 / (1 − s), with the share s of the cluster that its network is
    **Source** Epoch AI, training-cost-trends: amortised cost of a training run
    """
    return value_usd * DECLINE_ORDERS_PER_YEAR * math.log(10) / 8_766 / (1 - network_share)


_YEARS: Final = (1, 2, 3, 4, 5)
_P100: Final = {2: "residual-p100-sxm2-2018-2016", 4: "residual-p100-sxm2-2020-2016", 6: "residual-p100-sxm2-2022-2016"}
SOURCE: Final = (
    "middle: Epoch AI's trend, ×0.7244 a year; low: H100 depreciation guide of January 2026 (low trust); high: list "
    "prices of the P100 from 2016 to 2022, if they are above the trend"
)


class ResalePoint(Spec):
    """Resale value after a number of years, as a fraction of the new price, with its band."""

    years: float
    low: float
    share: float
    high: float


_NEW: Final = ResalePoint(years=0, low=1, share=1, high=1)


@dataclass(frozen=True)
class ResaleCurve:
    """A band of resale values over time; between its points, values decline exponentially."""

    points: tuple[ResalePoint, ...]
    source: str = SOURCE

    def share(self, years: float, deviations: float = 0.0) -> float:
        """Return the resale value as a fraction of the new price, a number of standard deviations from the middle."""
        low, middle, high = self.band(years)
        bound = high if deviations > 0 else low
        if deviations == 0 or bound == middle:
            return middle
        return float(middle * (bound / middle) ** (abs(deviations) / NINETY_PERCENT))

    def band(self, years: float) -> tuple[float, float, float]:
        """Return the low, middle and high resale value after `years`, as fractions of the new price."""
        known = (_NEW, *self.points)
        for before, after in pairwise(known):
            if years <= after.years:
                part = (years - before.years) / (after.years - before.years)
                return (
                    _interpolate_exponentially(before.low, after.low, part),
                    _interpolate_exponentially(before.share, after.share, part),
                    _interpolate_exponentially(before.high, after.high, part),
                )
        return self._band_after_last_point(known[-2], known[-1], years)

    def _band_after_last_point(
        self, before: ResalePoint, last: ResalePoint, years: float
    ) -> tuple[float, float, float]:
        """Return the band after the last point, extrapolated at the rate of decline of its middle."""
        part = (years - before.years) / (last.years - before.years)
        further = _interpolate_exponentially(before.share, last.share, part) / last.share if last.share > 0 else 0.0
        return last.low * further, last.share * further, last.high * further


def _interpolate_exponentially(before: float, after: float, part: float) -> float:
    return float(before * (after / before) ** part) if after > 0 else 0.0


def resale_curve(constants: tuple[Constant, ...]) -> ResaleCurve:
    """Return the resale curve from the evidence in `constants`."""
    by_id = {constant.id: constant.value for constant in constants}
    points = [
        ResalePoint(
            years=year,
            low=by_id[f"residual-h100-after-{year}-yr-low"],
            share=remaining_value_fraction(year),
            high=max(_p100_share(by_id, year), remaining_value_fraction(year)),
        )
        for year in _YEARS
    ]
    return ResaleCurve(points=tuple(points))


def user_resale_curve(share: float, horizon_years: float) -> ResaleCurve:
    """Return the resale curve that declines exponentially to the user's own value at the horizon."""
    return ResaleCurve(
        points=(ResalePoint(years=horizon_years, low=share, share=share, high=share),), source=USER_SOURCE
    )


def _p100_share(by_id: Mapping[str, float], year: int) -> float:
    known = {0: 1.0, **{after: by_id[name] for after, name in _P100.items()}}
    before = max(after for after in known if after <= year)
    if before == year:
        return known[before]
    following = before + 2
    part = (year - before) / (following - before)
    return math.exp((1 - part) * math.log(known[before]) + part * math.log(known[following]))
