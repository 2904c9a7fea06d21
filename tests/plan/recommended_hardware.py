"""Jobs to recommend hardware for, and the recommendations on a fixed day."""

from datetime import date
from typing import Final

from planner.cost.terms import CostTerms, DailyHours, Run
from planner.plan.catalog import Catalog
from planner.plan.plan import ModelChoice, Plan
from planner.plan.recommend.option import HardwareOption, Recommendation, Wish
from planner.plan.recommend.recommend import recommend
from planner.workload.workload import Inference, Training

TODAY: Final = date(2026, 11, 22)
TUNING: Final = Plan(
    model=ModelChoice(id="meta-llama/Llama-3.1-8B"),
    workload=Training(method="qlora", activation_checkpointing="full"),
    cost=CostTerms(job=Run(amount=50e6, unit="tokens")),
)
LARGE: Final = Plan(
    model=ModelChoice(id="meta-llama/Llama-3.1-70B"),
    workload=Inference(weights="nf4"),
    cost=CostTerms(job=DailyHours(hours_per_day=8)),
)


def recommended(plan: Plan, catalog: Catalog, **wish: object) -> Recommendation:
    result = recommend(plan, catalog, TODAY, Wish.model_validate(wish))
    assert result is not None
    return result


def measured_options(recommendation: Recommendation) -> list[HardwareOption]:
    """Return the options that may be recommended: comparable, of measured families, at current prices."""
    return [one for one in recommendation.options if one.comparable and one.current and one.basis != "unmeasured"]
