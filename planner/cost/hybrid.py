"""Owning a base load and renting the peaks: how many groups of cards to own for a demand that varies."""

from collections.abc import Sequence
from typing import Final

from planner.base import Spec
from planner.cost.demand import load_at
from planner.errors import SpecError

MOST_GROUPS: Final = 10_000


class Mix(Spec):
    """What it costs to own so many groups and rent the rest."""

    owned: int
    own_usd: float
    rent_usd: float
    owned_hours_fraction: float
    """Of the work, what the owned groups do."""

    @property
    def usd(self) -> float:
        """Return both together."""
        return self.own_usd + self.rent_usd


class Hybrid(Spec):
    """Every number of groups to own, from none to all of the peak, and the best of them."""

    best: Mix
    mixes: tuple[Mix, ...]


def best_mix(
    loads: Sequence[float], own_fixed_usd: float, own_usd_per_hour: float, rent_usd_per_hour: float, hours: float
) -> Hybrid:
    """Return what owning each number of groups costs; of equal ones, the best is the fewest.

    `loads` are the groups that are needed, in equal parts of `hours`; `own_fixed_usd` is what one group costs over
    them all without any work.

    **Formula** own k groups: k · F + s · Σ min(load, k) · t + p · Σ max(load − k, 0) · t. One more group is worth
    owning while it would be busy for a share above F / ((p − s) · hours).

    Raises:
        SpecError: If there is no load, or one is negative or very large.
    """
    if not loads or min(loads) < 0 or max(loads) > MOST_GROUPS:
        raise SpecError("loads", f"must be from 0 to {MOST_GROUPS:,} groups, at least one value")
    part, total = hours / len(loads), sum(loads)
    mixes = []
    for owned in range(-int(-max(loads) // 1) + 1):
        done = sum(min(load, owned) for load in loads)
        mixes.append(
            Mix(
                owned=owned,
                own_usd=owned * own_fixed_usd + own_usd_per_hour * done * part,
                rent_usd=rent_usd_per_hour * (total - done) * part,
                owned_hours_fraction=done / total if total else 1.0,
            )
        )
    return Hybrid(best=min(mixes, key=lambda mix: mix.usd), mixes=tuple(mixes))


def loads_of_peak(average_groups: float, peak_factor: float, parts: int = 240) -> tuple[float, ...]:
    """Return the groups that a service needs over its time, highest first, for `best_mix`.

    **Assumes** the shape of `planner.cost.demand.load_at`.
    """
    middles = ((part + 0.5) / parts for part in range(parts))
    return tuple(average_groups * load_at(middle, peak_factor) for middle in middles)
