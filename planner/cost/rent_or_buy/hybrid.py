"""Best mix of owned groups for the base load and rented groups for peaks."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from planner.base import Spec
from planner.cost.finance import annuity, ceil_with_tolerance
from planner.cost.job import HOURS_PER_YEAR
from planner.cost.rent_or_buy.case import RentOrBuyCase
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


def best_mix(
    loads: Sequence[float],
    own_fixed_usd: Sequence[float],
    own_usd_per_hour: float,
    rent_usd_per_hour: float,
    hours: float,
) -> Hybrid:
    """Return the mix for each number of owned groups, and the cheapest mix with the fewest owned groups.

    `loads` are the groups needed in equal parts of `hours`; `own_fixed_usd` are the fixed costs of owning 0, 1, 2 …
    groups.

    **Formula** k groups: F(k) + s · Σ min(load, k) · t + p · Σ max(⌈load⌉ − k, 0) · t. One more is worth owning while
    it is busy for a fraction of the time above its fixed cost over (p − s) · hours.

    **Assumes** that whole rented groups follow the load.

    Raises:
        SpecError: If there is no load, or one is negative or very large.
    """
    check_loads(loads)
    part, total = hours / len(loads), sum(loads)
    mixes = []
    for owned, fixed in enumerate(own_fixed_usd):
        done = sum(min(load, owned) for load in loads)
        rented = sum(max(ceil_with_tolerance(load) - owned, 0) for load in loads)
        mixes.append(
            Mix(
                owned=owned,
                own_usd=fixed + own_usd_per_hour * done * part,
                rent_usd=rent_usd_per_hour * rented * part,
                owned_work_fraction=done / total if total else 1.0,
            )
        )
    return Hybrid(best=min(mixes, key=lambda mix: mix.usd), mixes=tuple(mixes))


def find_best_mix(case: RentOrBuyCase, loads: Sequence[float], rent_usd_per_hour: float) -> Hybrid:
    """Return the best mix for `case` and the `loads` of its horizon, with hourly rent.

    Raises:
        SpecError: As `best_mix` does.
    """
    check_loads(loads)
    years, rate, drift = case.horizon_years, case.discount_rate, case.streams().drift
    fixed = [_fixed_usd(case, groups) for groups in range(ceil_with_tolerance(max(loads)) + 1)]
    per_hour = replace(case, shape=case.shape.evolve(groups=1)).streams().own_usd_per_hour
    return best_mix(
        loads,
        fixed,
        per_hour * annuity(rate, years) / years,
        rent_usd_per_hour * annuity(rate, years, drift) / years,
        HOURS_PER_YEAR * years,
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
