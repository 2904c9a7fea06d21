"""Cost estimates and rent-or-buy cases of a plan that several tests start from."""

from dataclasses import replace
from datetime import date

from planner.cost.demand import Throughput
from planner.cost.estimate import CostEstimate, estimate_cost
from planner.cost.figure import Figure
from planner.cost.job import DailyHours
from planner.cost.rent_or_buy.case import RentOrBuyCase
from planner.cost.terms import CostTerms
from planner.plan.catalog import Catalog

EVERY_DAY = DailyHours(hours_per_day=12, days_per_week=7)
PACE = Throughput(samples_per_second=2, tokens_per_second=600, low_time_factor=0.8, high_time_factor=1.3)


def estimate(
    catalog: Catalog, today: date, terms: CostTerms, gpu: str = "h100-sxm5-80gb", count: int = 8
) -> CostEstimate:
    return estimate_cost(terms, catalog.hardware.gpu(gpu), count, PACE, catalog.cost, today)


def case_of(
    catalog: Catalog, today: date, terms: CostTerms, gpu: str = "h100-sxm5-80gb", count: int = 8
) -> RentOrBuyCase:
    found = estimate(catalog, today, terms, gpu, count).case
    assert found is not None
    return found


def changed(case: RentOrBuyCase, **values: float) -> RentOrBuyCase:
    return replace(case, figures={**case.figures, **{name: Figure.own(value) for name, value in values.items()}})
