"""Cash flows of renting and owning, their present values, and break-even points."""

from typing import Final, NamedTuple

from planner.cost.finance import annuity, ceil_with_tolerance, discounted
from planner.cost.owning.accounting import ResaleCurve
from planner.cost.owning.costs import ServerSetup, financed_usd
from planner.cost.result import BreakEven
from planner.cost.terms import HOURS_PER_YEAR


class CashFlows(NamedTuple):
    """Cash flows of renting and owning for the same work."""

    capex_usd: float
    resale_base_usd: float
    own_usd_per_year: float
    own_usd_per_hour: float
    rent_usd_per_hour: float
    rent_usd_per_year: float
    rent_term_years: float
    """Term for which a commitment is paid, used or not; 0 without a commitment."""
    horizon_years: float
    once: bool
    """Whether all work is that of a single run, which is paid at once."""
    busy_hours_per_year: float
    drift: float
    discount_rate: float
    setup: ServerSetup
    resale: ResaleCurve
    resale_deviations: float = 0.0
    """Position of the resale value in its band, in standard deviations from the middle."""

    def own_usd(self, years: float, hours_per_year: float | None = None) -> float:
        """Return the present value of owning for `years`, after which the hardware is sold.

        **Formula** C + (fixed + slope · h) · a(r, t) − R(t) / (1 + r)^t

        **Assumes** that payments are spread evenly.
        """
        hours = self.busy_hours_per_year if hours_per_year is None else hours_per_year
        paid = years if self.once else annuity(self.discount_rate, years)
        cash = (self.own_usd_per_year + self.own_usd_per_hour * hours) * paid
        resale = self.resale_base_usd * self.resale.share(years, self.resale_deviations)
        return (
            financed_usd(self.capex_usd, self.setup, self.discount_rate, years)
            + cash
            - discounted(resale, self.discount_rate, years)
        )

    def rent_usd(self, years: float, hours_per_year: float | None = None) -> float:
        """Return the present value of renting for `years`.

        **Formula** (p · h + fixed) · a(r, d, t)

        **Assumes** that commitments are billed by the month; at the horizon, the rest of the last term is due.
        """
        hours = self.busy_hours_per_year if hours_per_year is None else hours_per_year
        until = paid_until(years, self.rent_term_years, self.horizon_years)
        per_year = self.rent_usd_per_hour * hours + self.rent_usd_per_year
        return per_year * (until if self.once else annuity(self.discount_rate, until, self.drift))

    def saving_usd(self, years: float) -> float:
        """Return the amount that owning saves over renting within `years`; negative if renting is cheaper."""
        return self.rent_usd(years) - self.own_usd(years)


def paid_until(years: float, term_years: float, horizon_years: float) -> float:
    """Return the time up to which rent is paid after `years`: at the horizon, to the end of the commitment's term."""
    if not term_years or years < horizon_years:
        return years
    return ceil_with_tolerance(years / term_years) * term_years


_STEPS_PER_YEAR: Final = 52
_BISECTIONS: Final = 60
NO_HOURLY_SAVING: Final = "an hour costs as much when owned as when rented, so buying never pays off"
ALWAYS_CHEAPER: Final = "owning is cheaper even without any use"
BEYOND_HORIZON: Final = "it would take more hours than there are in the compared period"
RENT_CHEAPER: Final = "renting is still cheaper at the end of the compared period"
NEVER_DEARER: Final = "owning is cheaper from the first day"
FIXED_RENT: Final = "the cost of renting does not depend on use"


def break_even(flows: CashFlows, horizon_years: float) -> BreakEven:
    """Return the break-even points over the horizon, with a reason for each missing point."""
    hours, reason = break_even_hours_per_year(flows, horizon_years)
    years, years_reason = break_even_years(flows, horizon_years)
    setup = flows.setup
    return BreakEven(
        gpu_hours=None if hours is None else hours * horizon_years * setup.count,
        utilization_fraction=None if hours is None else hours / (HOURS_PER_YEAR * setup.groups),
        years=years,
        reason=reason,
        years_reason=years_reason,
    )


def break_even_hours_per_year(flows: CashFlows, horizon_years: float) -> tuple[float | None, str | None]:
    """Return the group-hours per year at which renting and owning cost the same, or None and the reason.

    **Formula** both costs are linear in the hours h: h* = (own(0) − rent(0)) / (rent slope − own slope)
    """
    if flows.rent_usd_per_hour == 0:
        return None, FIXED_RENT
    own, rent = flows.own_usd(horizon_years, 0.0), flows.rent_usd(horizon_years, 0.0)
    slope = flows.rent_usd_per_hour * annuity(flows.discount_rate, horizon_years, flows.drift)
    slope -= flows.own_usd_per_hour * annuity(flows.discount_rate, horizon_years)
    if own <= rent and slope >= 0:
        return None, ALWAYS_CHEAPER
    if slope <= 0:
        return None, NO_HOURLY_SAVING
    hours = (own - rent) / slope
    if hours > HOURS_PER_YEAR * flows.setup.groups:
        return None, BEYOND_HORIZON
    return hours, None


def break_even_years(flows: CashFlows, horizon_years: float) -> tuple[float | None, str | None]:
    """Return the time after which owning stays cheaper up to the horizon, or None and the reason.

    It is the last crossing of the cost curves over time.
    """
    if flows.saving_usd(horizon_years) < 0:
        return None, RENT_CHEAPER
    steps = max(round(horizon_years * _STEPS_PER_YEAR), 1)
    times = [horizon_years * step / steps for step in range(steps, 0, -1)]
    later = times[0]
    for time in times[1:]:
        if flows.saving_usd(time) < 0:
            return _crossing_years(flows, time, later), None
        later = time
    if flows.saving_usd(later / _STEPS_PER_YEAR) < 0:
        return _crossing_years(flows, later / _STEPS_PER_YEAR, later), None
    return None, NEVER_DEARER


def _crossing_years(flows: CashFlows, before: float, after: float) -> float:
    for _ in range(_BISECTIONS):
        middle = (before + after) / 2
        before, after = (middle, after) if flows.saving_usd(middle) < 0 else (before, middle)
    return after


def hours_to_pay_back(capex_usd: float, rent_usd_per_hour: float, own_usd_per_hour: float) -> float | None:
    """Return the hours of use after which a purchase has paid for itself, or None if it never does.

    **Formula** H* = C / (p_cloud − p_own); subtract the present value of a resale from C first

    **Source** Lenovo Press LP2225
    """
    saved = rent_usd_per_hour - own_usd_per_hour
    return capex_usd / saved if saved > 0 else None
