"""Uncertainty of the decision: a Monte Carlo simulation with a fixed seed, and the effect of each input."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat
from typing import Final

from planner.base import Spec, Stop
from planner.cost.figure import NINETY_PERCENT, TEN_TO_NINETY, quantiles
from planner.cost.finance import annuity, discounted
from planner.cost.owning.costs import financed_usd
from planner.cost.rent_or_buy.case import RESALE, RentOrBuyCase
from planner.cost.rent_or_buy.cash_flows import CashFlows, paid_until

DRAWS: Final = 2_000
SEED: Final = 20_261_121
"""Random seed: the date on which the catalog's prices were collected."""
_POINTS: Final = 12
_CHECK_EVERY: Final = 50
_TENTHS: Final = (1, 5, 9)


class Quantiles(Spec):
    """The 10th, 50th and 90th percentiles over all draws."""

    p10: float
    p50: float
    p90: float


class BandPoint(Spec):
    """Quantiles of the cumulative cost at one time, in present value, over all draws."""

    years: float
    rent_usd: Quantiles
    own_usd: Quantiles


class Simulation(Spec):
    """Result of a Monte Carlo simulation of the decision."""

    draws: int
    seed: int
    saving_usd: Quantiles
    rent_usd: Quantiles
    own_usd: Quantiles
    owning_cheaper_fraction: float
    band: tuple[BandPoint, ...]


@dataclass(frozen=True, slots=True)
class _TimePointFactors:
    """Annuity, discount, financing and resale factors at one time, the same in every draw."""

    years: float
    rent_years: float
    once: bool
    annuity: float
    discount: float
    financed: float
    resale: tuple[float, float, float]


def simulate(
    case: RentOrBuyCase, draws: int = DRAWS, seed: int = SEED, cancelled: Stop = lambda: False
) -> Simulation | None:
    """Return the result of a simulation with `draws` draws, or None as soon as `cancelled` returns true.

    **Source** Epoch AI, training-cost-trends: log-normals from 90 % ranges

    **Assumes** independent inputs.
    """
    moments = [_time_point(case, case.horizon_years * step / _POINTS) for step in range(_POINTS + 1)]
    rents: list[list[float]] = [[] for _ in moments]
    owns: list[list[float]] = [[] for _ in moments]
    for draw, drawn in enumerate(_drawn_flows(case, draws, seed)):
        if draw % _CHECK_EVERY == 0 and cancelled():
            return None
        for moment, rent, own in zip(moments, rents, owns, strict=True):
            rent.append(_rent_usd(drawn, moment))
            own.append(_own_usd(drawn, moment))
    return _simulate_draws(moments, rents, owns, draws, seed)


def owning_cheaper_fraction(case: RentOrBuyCase) -> float:
    """Return the fraction of the draws of `simulate` in which owning is cheaper at the horizon, without the rest."""
    moment = _time_point(case, case.horizon_years)
    drawn_flows = _drawn_flows(case, DRAWS, SEED)
    return sum(_rent_usd(drawn, moment) > _own_usd(drawn, moment) for drawn in drawn_flows) / DRAWS


def _drawn_flows(case: RentOrBuyCase, draws: int, seed: int) -> Iterator[CashFlows]:
    inputs = len(case.uncertain)
    resale = _deviations(inputs, draws, seed)[-1] if RESALE in case.uncertain else repeat(0.0, draws)
    ranged = {
        name: _drawn_values(figure.value, figure.lowest, figure.highest, index, inputs, draws, seed)
        for index, name in enumerate(case.uncertain)
        if (figure := case.figures.get(name)) is not None
    }
    names, values = tuple(ranged), dict(case.central)
    rows = zip(*ranged.values(), strict=True) if ranged else repeat((), draws)
    for row, deviation in zip(rows, resale, strict=True):
        values.update(zip(names, row, strict=True))
        yield case.with_values(values, deviation)


# A keystroke changes few of the inputs, and the draws of the others stay as they are.
@lru_cache(maxsize=256)
def _drawn_values(
    value: float, low: float, high: float, index: int, inputs: int, draws: int, seed: int
) -> tuple[float, ...]:
    return tuple(quantiles(value, low, high, _deviations(inputs, draws, seed)[index]))


@lru_cache(maxsize=32)
def _deviations(inputs: int, draws: int, seed: int) -> tuple[tuple[float, ...], ...]:
    rng = random.Random(seed)
    rows = [[rng.gauss(0.0, 1.0) for _ in range(inputs)] for _ in range(draws)]
    return tuple(zip(*rows, strict=True))


def _simulate_draws(
    moments: Sequence[_TimePointFactors], rents: list[list[float]], owns: list[list[float]], draws: int, seed: int
) -> Simulation:
    band = tuple(
        BandPoint(years=moment.years, rent_usd=_quantiles(rent), own_usd=_quantiles(own))
        for moment, rent, own in zip(moments, rents, owns, strict=True)
    )
    return Simulation(
        draws=draws,
        seed=seed,
        saving_usd=_quantiles([rent - own for rent, own in zip(rents[-1], owns[-1], strict=True)]),
        rent_usd=band[-1].rent_usd,
        own_usd=band[-1].own_usd,
        owning_cheaper_fraction=sum(rent > own for rent, own in zip(rents[-1], owns[-1], strict=True)) / draws,
        band=band,
    )


def _time_point(case: RentOrBuyCase, years: float) -> _TimePointFactors:
    return _TimePointFactors(
        years=years,
        rent_years=paid_until(years, case.rent_term_years, case.horizon_years),
        once=case.once,
        annuity=years if case.once else annuity(case.discount_rate, years),
        discount=discounted(1.0, case.discount_rate, years),
        financed=financed_usd(1.0, case.setup, case.discount_rate, years),
        resale=case.resale.band(years),
    )


def _rent_usd(drawn: CashFlows, moment: _TimePointFactors) -> float:
    per_year = drawn.rent_usd_per_hour * drawn.busy_hours_per_year + drawn.rent_usd_per_year
    if moment.once:
        return per_year * moment.rent_years
    return per_year * annuity(drawn.discount_rate, moment.rent_years, drawn.drift)


def _own_usd(drawn: CashFlows, moment: _TimePointFactors) -> float:
    """Return the result of `CashFlows.own_usd` from precomputed factors; financing is proportional to the purchase."""
    cash = (drawn.own_usd_per_year + drawn.own_usd_per_hour * drawn.busy_hours_per_year) * moment.annuity
    low, middle, high = moment.resale
    deviations = drawn.resale_deviations
    bound = high if deviations > 0 else low
    share = middle if bound == middle else middle * (bound / middle) ** (abs(deviations) / NINETY_PERCENT)
    return drawn.capex_usd * moment.financed + cash - drawn.resale_base_usd * share * moment.discount


def _quantiles(values: list[float]) -> Quantiles:
    ranked = sorted(values)
    low, middle, high = (ranked[min(len(ranked) * tenth // 10, len(ranked) - 1)] for tenth in _TENTHS)
    return Quantiles(p10=low, p50=middle, p90=high)


class Swing(Spec):
    """Effect of one input's uncertainty on the saving of owning."""

    name: str
    low_value: float
    value: float
    high_value: float
    low_saving_usd: float
    high_saving_usd: float
    flips: bool
    """Whether the decision differs between the two ends of the range."""
    source: str

    @property
    def width_usd(self) -> float:
        """Return the width of the saving's range in USD."""
        return abs(self.high_saving_usd - self.low_saving_usd)


def tornado(case: RentOrBuyCase) -> tuple[Swing, ...]:
    """Return the swing of each uncertain input for a tornado chart, the widest first."""
    swings = [_swing(case, name) for name in case.uncertain]
    return tuple(sorted((swing for swing in swings if swing.width_usd), key=lambda swing: -swing.width_usd))


def _swing(case: RentOrBuyCase, name: str) -> Swing:
    years = case.horizon_years
    low, high = (case.cash_flows({name: sign * TEN_TO_NINETY}).saving_usd(years) for sign in (-1, 1))
    values = [_figure_value(case, name, deviation) for deviation in (-TEN_TO_NINETY, 0.0, TEN_TO_NINETY)]
    return Swing(
        name=name,
        low_value=values[0],
        value=values[1],
        high_value=values[2],
        low_saving_usd=low,
        high_saving_usd=high,
        flips=(low < 0) != (high < 0),
        source=case.resale.source if name == RESALE else case.figures[name].source,
    )


def _figure_value(case: RentOrBuyCase, name: str, deviation: float) -> float:
    if name == RESALE:
        return case.resale.share(case.horizon_years, deviation)
    return case.figures[name].quantile(deviation)
