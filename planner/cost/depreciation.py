"""How the books let hardware lose its value; what it really sells for is `planner.cost.residual`."""

import math
from typing import Final

from planner.cost.terms import DepreciationMethod

MACRS_5_YEAR: Final = (0.2, 0.32, 0.192, 0.1152, 0.1152, 0.0576)
"""Shares of the cost written off in each tax year.

**Source** IRS, MACRS half-year table for five-year property, by a secondary transcription; US tax only.
"""
DECLINE_ORDERS_PER_YEAR: Final = 0.14
"""**Source** Epoch AI, training-cost-trends; arXiv 2405.21015: orders of magnitude a year, ×0.7244."""


def yearly_depreciation(cost_usd: float, method: DepreciationMethod, years: float, horizon_years: int) -> list[float]:
    """Return what is written off in each of the first `horizon_years` years; never more than the cost in all.

    **Formula** straight line: C / Y until Y; declining: C · (10^−0.14(t−1) − 10^−0.14t); MACRS: its table.
    """
    if method == "straight-line":
        return [cost_usd / years * max(min(years - year, 1.0), 0.0) for year in range(horizon_years)]
    if method == "declining":
        return [cost_usd * (remaining(year) - remaining(year + 1)) for year in range(horizon_years)]
    shares = (*MACRS_5_YEAR, *(0.0,) * horizon_years)
    return [cost_usd * share for share in shares[:horizon_years]]


def remaining(years: float) -> float:
    """Return the share of the value that is left after `years` of the declining trend."""
    return float(10 ** (-DECLINE_ORDERS_PER_YEAR * years))


def value_lost_per_hour(value_usd: float, network_share: float = 0.0) -> float:
    """Return what an hour of hardware costs that is worth `value_usd` now and declines by the trend.

    **Formula** V · 0.14 · ln 10 / 8,766 / (1 − s), with the share s of the cluster that its network is
    **Source** Epoch AI, training-cost-trends: amortised cost of a training run
    """
    return value_usd * DECLINE_ORDERS_PER_YEAR * math.log(10) / 8_766 / (1 - network_share)
