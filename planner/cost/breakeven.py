"""Where renting and owning cost the same: in hours of use, in utilisation, and in time."""

from typing import Final

from planner.cost.finance import annuity
from planner.cost.job import HOURS_PER_YEAR
from planner.cost.result import BreakEven
from planner.cost.streams import Streams

_STEPS_PER_YEAR: Final = 52
_BISECTIONS: Final = 60
NEVER_CHEAPER: Final = "an hour of one's own costs as much as a rented one, so no amount of use pays the purchase back"
ALWAYS_CHEAPER: Final = "owning is cheaper even without any use"
BEYOND: Final = "it would take more hours than the horizon has"
RENT_CHEAPER: Final = "renting is still cheaper at the end of the horizon"
NEVER_DEARER: Final = "owning is cheaper from the first day on"
FIXED_RENT: Final = "renting costs the same however much it is used, so no amount of use decides"


def break_even(streams: Streams, horizon_years: float) -> BreakEven:
    """Return where the costs meet over the horizon, each with the reason where they do not."""
    hours, reason = break_even_hours_per_year(streams, horizon_years)
    years, years_reason = break_even_years(streams, horizon_years)
    shape = streams.shape
    return BreakEven(
        gpu_hours=None if hours is None else hours * horizon_years * shape.count,
        utilization_fraction=None if hours is None else hours / (HOURS_PER_YEAR * shape.groups),
        years=years,
        reason=reason,
        years_reason=years_reason,
    )


def break_even_hours_per_year(streams: Streams, horizon_years: float) -> tuple[float | None, str | None]:
    """Return the group-hours a year at which both cost the same over the horizon, or None and why.

    **Formula** both are straight lines in the hours h: h* = (own(0) − rent(0)) / (rent slope − own slope)
    """
    if streams.rent_usd_per_hour == 0:
        return None, FIXED_RENT
    own, rent = streams.own_usd(horizon_years, 0.0), streams.rent_usd(horizon_years, 0.0)
    slope = streams.rent_usd_per_hour * annuity(streams.discount_rate, horizon_years, streams.drift)
    slope -= streams.own_usd_per_hour * annuity(streams.discount_rate, horizon_years)
    if own <= rent and slope >= 0:
        return None, ALWAYS_CHEAPER
    if slope <= 0:
        return None, NEVER_CHEAPER
    hours = (own - rent) / slope
    if hours > HOURS_PER_YEAR * streams.shape.groups:
        return None, BEYOND
    return hours, None


def break_even_years(streams: Streams, horizon_years: float) -> tuple[float | None, str | None]:
    """Return the time from which on owning is cheaper up to the horizon, at the planned use, or None and why.

    It is where the curves over time cross for the last time; a commitment's curve jumps, and may cross in a jump.
    """
    if streams.saving_usd(horizon_years) < 0:
        return None, RENT_CHEAPER
    steps = max(round(horizon_years * _STEPS_PER_YEAR), 1)
    times = [horizon_years * step / steps for step in range(steps, 0, -1)]
    later = times[0]
    for time in times[1:]:
        if streams.saving_usd(time) < 0:
            return _crossing(streams, time, later), None
        later = time
    if streams.saving_usd(later / _STEPS_PER_YEAR) < 0:
        return _crossing(streams, later / _STEPS_PER_YEAR, later), None
    return None, NEVER_DEARER


def _crossing(streams: Streams, before: float, after: float) -> float:
    for _ in range(_BISECTIONS):
        middle = (before + after) / 2
        before, after = (middle, after) if streams.saving_usd(middle) < 0 else (before, middle)
    return after


def hours_to_pay_back(capex_usd: float, rent_usd_per_hour: float, own_usd_per_hour: float) -> float | None:
    """Return the hours of use after which a purchase has paid for itself, or None where it never does.

    **Formula** H* = C / (p_cloud − p_own); take the present value of a resale from C
    **Source** Lenovo Press LP2225
    """
    saved = rent_usd_per_hour - own_usd_per_hour
    return capex_usd / saved if saved > 0 else None
