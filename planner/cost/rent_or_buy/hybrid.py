"""Best mix of owned groups for the base load and rented groups for peaks."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from planner.base import Spec
from planner.cost.demand import Demand
from planner.cost.finance import annuity, ceil_with_tolerance
from planner.cost.job import HOURS_PER_YEAR
from planner.cost.rent_or_buy.case import RENT_PRICE, RentOrBuyCase
from planner.errors import SpecError

MOST_GROUPS: Final = 2_000


class Mix(Spec):
    """Cost of owning a number of groups and renting the rest over the horizon, in present value."""

    owned: int
    own_usd: float
    rent_usd: float
    owned_work_fraction: float
    """Fraction of the work that the owned groups do."""

    @property
    def usd(self) -> float:
        """Return the total cost in USD."""
        return self.own_usd + self.rent_usd


class Hybrid(Spec):
    """Mixes for every number of owned groups up to the peak, and the cheapest mix."""

    best: Mix
    mixes: tuple[Mix, ...]
    always_on: bool = False
    """Whether rented groups run day and night, or only when needed."""


def best_mix(
    loads: Sequence[float],
    own_fixed_usd: Sequence[float],
    own_usd_per_hour: float,
    rent_usd_per_hour: float,
    hours: float,
    *,
    work_hours: float | None = None,
    rent_fixed_usd: float = 0.0,
    always_on: bool = False,
) -> Hybrid:
    """Return the mix for each number of owned groups, and the cheapest mix with the fewest owned groups.

    `loads` are the groups needed in equal parts of `hours`; `own_fixed_usd` are the fixed costs of owning 0, 1, 2 …
    groups; `work_hours` are the group-hours of work, by default the sum of the loads. `rent_fixed_usd` is paid with any
    rented group. Rented groups follow the load, or run all the time if `always_on`.

    **Formula** k groups: F(k) + s · W · Σ min(load, k) / Σ load + p · Σ max(⌈load⌉ − k, 0) · t, or p · (n − k) · hours
    if always on. One more is worth owning while it is busy for a fraction of the time above its fixed cost over
    (p − s) · hours.

    Raises:
        SpecError: If there is no load, or one is negative or very large.
    """
    check_loads(loads)
    part, total, most = hours / len(loads), sum(loads), len(own_fixed_usd) - 1
    work = total * part if work_hours is None else work_hours
    mixes = []
    for owned, fixed in enumerate(own_fixed_usd):
        done = sum(min(load, owned) for load in loads) / total if total else 1.0
        rented = sum(max((most if always_on else ceil_with_tolerance(load)) - owned, 0) for load in loads) * part
        mixes.append(
            Mix(
                owned=owned,
                own_usd=fixed + own_usd_per_hour * done * work,
                rent_usd=rent_usd_per_hour * rented + (rent_fixed_usd if rented else 0.0),
                owned_work_fraction=done,
            )
        )
    return Hybrid(best=min(mixes, key=lambda mix: mix.usd), mixes=tuple(mixes), always_on=always_on)


def find_best_mix(case: RentOrBuyCase, loads: Sequence[float], demand: Demand) -> Hybrid:
    """Return the best mix for `case`, whose service has the `loads` and the `demand`, with hourly rent.

    Its ends are the costs of renting all and of owning all in the decision.

    Raises:
        SpecError: As `best_mix` does.
    """
    check_loads(loads)
    streams, years = case.streams(), case.horizon_years
    own_annuity, rent_annuity = (annuity(case.discount_rate, years, growth) for growth in (0.0, streams.drift))
    return best_mix(
        loads,
        [_fixed_usd(case, groups) for groups in range(demand.groups + 1)],
        streams.own_usd_per_hour * own_annuity / years,
        case.central[RENT_PRICE] * rent_annuity / years,
        HOURS_PER_YEAR * years,
        work_hours=streams.busy_hours_per_year * years,
        rent_fixed_usd=case.rent_usd_per_year * rent_annuity,
        always_on=demand.always_on,
    )


def check_loads(loads: Sequence[float]) -> None:
    """Reject loads that no mix can be computed for.

    Raises:
        SpecError: If there is none, or one is negative or very large.
    """
    if not loads or min(loads) < 0 or max(loads) > MOST_GROUPS:
        raise SpecError("loads", f"must be from 0 to {MOST_GROUPS:,} groups, and at least one")


def _fixed_usd(case: RentOrBuyCase, groups: int) -> float:
    if groups == 0:
        return 0.0
    return replace(case, shape=case.shape.evolve(groups=groups)).streams().own_usd(case.horizon_years, 0.0)
