"""Renting and owning as streams of money over time: the few numbers that every comparison needs, and their sums."""

import math
from dataclasses import dataclass
from typing import Final

from planner.cost.finance import annuity, discounted
from planner.cost.owning import Shape, Values, bought, financed, kept
from planner.cost.residual import ResaleCurve

_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Streams:
    """Renting and owning the same work."""

    capex_usd: float
    resale_base_usd: float
    own_usd_per_year: float
    own_usd_per_hour: float
    rent_usd_per_hour: float
    rent_usd_per_year: float
    rent_term_years: float
    """For commitments: for how long each is paid, used or not; 0 where one pays for hours only."""
    busy_hours_per_year: float
    drift: float
    discount_rate: float
    shape: Shape
    resale: ResaleCurve
    resale_deviations: float = 0.0
    """Where in its band the resale value lies, in standard deviations from the middle."""

    def own_usd(self, years: float, hours_per_year: float | None = None) -> float:
        """Return what owning has cost in today's money if it ends after `years` and the cards are sold then.

        **Formula** C + (fixed + slope · h) · a(r, t) − R(t) / (1 + r)^t
        **Assumes** that payments are spread evenly, and that only cards are sold.
        """
        hours = self.busy_hours_per_year if hours_per_year is None else hours_per_year
        cash = (self.own_usd_per_year + self.own_usd_per_hour * hours) * annuity(self.discount_rate, years)
        resale = self.resale_base_usd * self.resale.share(years, self.resale_deviations)
        return (
            financed(self.capex_usd, self.shape, self.discount_rate, years)
            + cash
            - discounted(resale, self.discount_rate, years)
        )

    def rent_usd(self, years: float, hours_per_year: float | None = None) -> float:
        """Return what renting has cost in today's money after `years`; a commitment that began is paid to its end.

        **Formula** (p · h + fixed) · a(r, d, t)
        """
        hours = self.busy_hours_per_year if hours_per_year is None else hours_per_year
        until = years
        if self.rent_term_years:
            until = math.ceil(years / self.rent_term_years - _ROUNDING) * self.rent_term_years
        per_year = self.rent_usd_per_hour * hours + self.rent_usd_per_year
        return per_year * annuity(self.discount_rate, until, self.drift)

    def saving_usd(self, years: float) -> float:
        """Return what owning saves over renting by `years`; negative where renting is cheaper."""
        return self.rent_usd(years) - self.own_usd(years)


@dataclass(frozen=True, slots=True)
class Usage:
    """How the machines are used, and what renting them costs at the start."""

    busy_hours_per_year: float
    rent_usd_per_hour: float
    rent_usd_per_year: float
    rent_term_years: float = 0.0


def streams(
    values: Values,
    shape: Shape,
    usage: Usage,
    resale: ResaleCurve,
    discount_rate: float,
    drift: float = 0.0,
    resale_deviations: float = 0.0,
) -> Streams:
    """Return the streams of owning with these figures, beside those of renting."""
    purchase = bought(values, shape)
    yearly = kept(values, shape, purchase)
    return Streams(
        capex_usd=purchase.usd,
        resale_base_usd=purchase.cards,
        own_usd_per_year=yearly.usd_per_year,
        own_usd_per_hour=yearly.usd_per_busy_hour,
        rent_usd_per_hour=usage.rent_usd_per_hour,
        rent_usd_per_year=usage.rent_usd_per_year,
        rent_term_years=usage.rent_term_years,
        busy_hours_per_year=usage.busy_hours_per_year,
        drift=drift,
        discount_rate=discount_rate,
        shape=shape,
        resale=resale,
        resale_deviations=resale_deviations,
    )
