"""Cost estimates of cards at a pace, for tests of their words and rows."""

from datetime import date

from planner.cost.demand import Throughput
from planner.cost.estimate import CostEstimate, estimate_cost
from planner.cost.result import Decision
from planner.cost.terms import CostTerms, DailyHours, Job
from planner.plan.catalog import Catalog
from planner.plan.plan import ModelChoice, Plan
from planner.workload.training import Training

TODAY = date(2026, 11, 22)
PACE = Throughput(
    tokens_per_second=1_000, samples_per_second=2, low_time_factor=0.8, high_time_factor=1.3, concurrent_requests=8
)
RENTING = {"month_usd": 212.0, "start_usd": 0.0, "unit_usd": 0.0042, "unit": "1,000 requests"}
OWNING = {"month_usd": 131.0, "start_usd": 2_952.0, "unit_usd": 1.52, "unit": "1,000 requests"}
QLORA_ON_4090 = Plan(
    model=ModelChoice(id="meta-llama/Llama-3.1-8B"),
    workload=Training(method="qlora", activation_checkpointing="full"),
    gpu="rtx-4090",
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


def decision_to_rent(**changes: object) -> Decision:
    """Return a decision to rent one L40S rather than to buy it, changed by `changes`."""
    fields = {
        "decision": "rent",
        "verdict": "rent",
        "confidence": 0.824,
        "more_often_cheaper": "rent",
        "draws": 2_000,
        "rent_figures": RENTING,
        "own_figures": OWNING,
        "provider": "RunPod",
        "region": None,
        "offer_id": "x",
        "gpu": "l40s",
        "count": 1,
        "planned_gpu_hours": 300.0,
        "planned_utilization_fraction": 0.01,
        "break_even_gpu_hours": 1_430.0,
        "break_even_reason": None,
        "rent_usd": 300.0,
        "own_usd": 1_510.0,
        "saves_usd": 1_210.0,
        "flips_at_utilization_fraction": 0.41,
        "flips_at_card_price_usd": 5_100.0,
        "flips_at_rent_usd_per_gpu_hour": None,
        "horizon_years": 2.5,
        "oldest_price_date": "2026-11-10",
    }
    return Decision.model_validate(fields | changes)
