"""Cost estimates of cards at a pace, for tests of their words and rows."""

from datetime import date

from planner.cost.demand import Throughput
from planner.cost.estimate import CostEstimate, estimate_cost
from planner.cost.job import DailyHours, Job
from planner.cost.terms import CostTerms
from planner.plan.catalog import Catalog

TODAY = date(2026, 11, 22)
PACE = Throughput(
    tokens_per_second=1_000, samples_per_second=2, low_time_factor=0.8, high_time_factor=1.3, concurrent_requests=8
)


def estimated(
    catalog: Catalog,
    job: Job | None = None,
    gpu: str = "l40s",
    pace: Throughput = PACE,
    count: int = 1,
    **terms: object,
) -> CostEstimate:
    known = {"job": job or DailyHours(hours_per_day=8)} | terms
    return estimate_cost(CostTerms(**known), catalog.hardware.gpu(gpu), 1, pace, catalog.cost, TODAY)
