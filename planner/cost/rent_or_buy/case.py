"""Inputs of a rent-or-buy decision, and the resulting cash flows."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from planner.cost.figure import Figure
from planner.cost.job import HOURS_PER_YEAR
from planner.cost.owning.costs import ServerSetup, running_costs, upfront_costs
from planner.cost.owning.residual import ResaleCurve
from planner.cost.rent_or_buy.cash_flows import CashFlows

RESALE: Final = "resale_share"
RENT_PRICE: Final = "rent_usd_per_hour"
DRIFT: Final = "price_drift_per_year"
USE: Final = "use_factor"
TIME: Final = "time_factor"
_NOTHING: Final[Mapping[str, float]] = {}


@dataclass(frozen=True, eq=False)
class RentOrBuyCase:
    """All inputs of one rent-or-buy decision.

    `figures` has the ownership figures by the names in `planner.cost.owning.costs.FIGURES`, the rent per billed
    group-hour, the price drift, and two factors on the hours: for the amount of use and for the duration of the work.
    """

    figures: Mapping[str, Figure]
    shape: ServerSetup
    resale: ResaleCurve
    busy_hours_per_year: float
    billed_per_busy_hour: float
    """Billed hours of rent per hour of work; 0 if the rent does not depend on use."""
    billed_hours_per_year: float
    """Billed hours of rent per year that do not depend on use."""
    rent_usd_per_year: float
    """Yearly rental payments besides the machines, such as storage and egress."""
    rent_term_years: float
    horizon_years: float
    discount_rate: float
    once: bool = False
    """Whether all work is that of a single run: it is paid at once, and machines cost nothing while it does not run."""

    @cached_property
    def central(self) -> dict[str, float]:
        """Return the central values of all figures, by name."""
        return {name: figure.value for name, figure in self.figures.items()}

    @cached_property
    def uncertain(self) -> tuple[str, ...]:
        """Return the names of the figures with a range, including the resale value unless the user set it."""
        ranged = [name for name, figure in self.figures.items() if figure.lowest < figure.highest]
        low, _, high = self.resale.band(self.horizon_years)
        return (*ranged, RESALE) if low < high else tuple(ranged)

    def streams(self, deviations: Mapping[str, float] = _NOTHING) -> CashFlows:
        """Return the cash flows with some figures moved by a number of standard deviations from their median."""
        values = dict(self.central)
        for name, deviation in deviations.items():
            if name != RESALE:
                values[name] = self.figures[name].quantile(deviation)
        return self.with_values(values, deviations.get(RESALE, 0.0))

    def with_values(self, values: Mapping[str, float], resale_deviations: float = 0.0) -> CashFlows:
        """Return the cash flows for these values of all figures."""
        purchase = upfront_costs(values, self.shape)
        yearly = running_costs(values, self.shape, purchase)
        return CashFlows(
            capex_usd=purchase.usd,
            resale_base_usd=purchase.resale_base,
            own_usd_per_year=0.0 if self.once else yearly.usd_per_year,
            own_usd_per_hour=yearly.usd_per_busy_hour
            + (yearly.usd_per_year / (HOURS_PER_YEAR * self.shape.groups) if self.once else 0.0),
            rent_usd_per_hour=values[RENT_PRICE] * self.billed_per_busy_hour,
            rent_usd_per_year=self.rent_usd_per_year + values[RENT_PRICE] * self.billed_hours_per_year,
            rent_term_years=self.rent_term_years,
            horizon_years=self.horizon_years,
            once=self.once,
            busy_hours_per_year=self.busy_hours_per_year * values[USE] * values[TIME],
            drift=values[DRIFT],
            discount_rate=self.discount_rate,
            shape=self.shape,
            resale=self.resale,
            resale_deviations=resale_deviations,
        )
