"""The decision over many draws of all uncertain inputs at once, always the same ones."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from planner.base import Spec
from planner.cost.case import Case
from planner.cost.figure import NINETY_PERCENT
from planner.cost.finance import annuity, discounted
from planner.cost.owning import financed
from planner.cost.streams import Streams

DRAWS: Final = 2_000
SEED: Final = 20_261_121
"""The day on which the prices of the catalog were collected."""
_POINTS: Final = 12
_CHECK_EVERY: Final = 50
_TENTHS: Final = (1, 5, 9)
_ROUNDING: Final = 1e-9


class Quantiles(Spec):
    """What one draw in ten lies below, half of them, and nine in ten."""

    p10: float
    p50: float
    p90: float


class BandPoint(Spec):
    """What was spent by a moment, in today's money, over all draws."""

    years: float
    rent_usd: Quantiles
    own_usd: Quantiles


class Simulation(Spec):
    """How the decision comes out over all draws."""

    draws: int
    seed: int
    saving_usd: Quantiles
    rent_usd: Quantiles
    own_usd: Quantiles
    owning_cheaper_fraction: float
    band: tuple[BandPoint, ...]


@dataclass(frozen=True, slots=True)
class _Moment:
    """What is the same in every draw at one moment."""

    years: float
    rent_years: float
    annuity: float
    discount: float
    financed: float
    resale: tuple[float, float, float]


def simulate(
    case: Case, draws: int = DRAWS, seed: int = SEED, cancelled: Callable[[], bool] = lambda: False
) -> Simulation | None:
    """Return the outcome of `draws` draws, or None as soon as `cancelled` says that it is not wanted any more.

    **Source** Epoch AI, training-cost-trends: log-normals from 90 % ranges
    **Assumes** that the inputs do not depend on each other.
    """
    moments = _moments(case)
    rng = random.Random(seed)
    rents: list[list[float]] = [[] for _ in moments]
    owns: list[list[float]] = [[] for _ in moments]
    for draw in range(draws):
        if draw % _CHECK_EVERY == 0 and cancelled():
            return None
        drawn = case.streams({name: rng.gauss(0.0, 1.0) for name in case.uncertain})
        for moment, rent, own in zip(moments, rents, owns, strict=True):
            rent.append(_rent_usd(drawn, moment))
            own.append(_own_usd(drawn, moment))
    return _outcome(moments, rents, owns, draws, seed)


def _outcome(
    moments: Sequence[_Moment], rents: list[list[float]], owns: list[list[float]], draws: int, seed: int
) -> Simulation:
    savings = [rent - own for rent, own in zip(rents[-1], owns[-1], strict=True)]
    band = tuple(
        BandPoint(years=moment.years, rent_usd=_quantiles(rent), own_usd=_quantiles(own))
        for moment, rent, own in zip(moments, rents, owns, strict=True)
    )
    return Simulation(
        draws=draws,
        seed=seed,
        saving_usd=_quantiles(savings),
        rent_usd=band[-1].rent_usd,
        own_usd=band[-1].own_usd,
        owning_cheaper_fraction=sum(saving > 0 for saving in savings) / draws,
        band=band,
    )


def _moments(case: Case) -> list[_Moment]:
    return [_moment(case, case.horizon_years * step / _POINTS) for step in range(_POINTS + 1)]


def _moment(case: Case, years: float) -> _Moment:
    term = case.rent_term_years
    return _Moment(
        years=years,
        rent_years=math.ceil(years / term - _ROUNDING) * term if term else years,
        annuity=annuity(case.discount_rate, years),
        discount=discounted(1.0, case.discount_rate, years),
        financed=financed(1.0, case.shape, case.discount_rate, years),
        resale=case.resale.band(years),
    )


def _rent_usd(drawn: Streams, moment: _Moment) -> float:
    per_year = drawn.rent_usd_per_hour * drawn.busy_hours_per_year + drawn.rent_usd_per_year
    return per_year * annuity(drawn.discount_rate, moment.rent_years, drawn.drift)


def _own_usd(drawn: Streams, moment: _Moment) -> float:
    """Return what `Streams.own_usd` does, from what is known of the moment; a purchase is financed in proportion."""
    cash = (drawn.own_usd_per_year + drawn.own_usd_per_hour * drawn.busy_hours_per_year) * moment.annuity
    low, middle, high = moment.resale
    deviations = drawn.resale_deviations
    bound = high if deviations > 0 else low
    share = middle if bound == middle else middle * (bound / middle) ** (abs(deviations) / NINETY_PERCENT)
    return drawn.capex_usd * moment.financed + cash - drawn.resale_base_usd * share * moment.discount


def _quantiles(found: list[float]) -> Quantiles:
    ranked = sorted(found)
    low, middle, high = (ranked[min(len(ranked) * tenth // 10, len(ranked) - 1)] for tenth in _TENTHS)
    return Quantiles(p10=low, p50=middle, p90=high)
