"""What a plan's job takes and costs on every card."""

from datetime import date

import pytest

from planner.cost.terms import CostTerms, DailyHours, Run, Service
from planner.plan.evaluate import evaluate, find_fits
from planner.plan.job_costs import job_by_gpu
from planner.plan.money import evaluate_cost
from planner.plan.plan import ModelChoice, Plan
from planner.workload.parallel import CardCount
from planner.workload.workload import Inference, Training

TODAY = date(2026, 11, 22)
TUNING = Plan(
    model=ModelChoice(id="meta-llama/Llama-3.1-8B"),
    workload=Training(method="qlora", activation_checkpointing="full"),
    gpu="l4",
    cost=CostTerms(job=Run(amount=50e6, unit="tokens")),
)


def test_the_cost_of_a_job_is_that_of_the_plan_on_the_card(catalog):
    jobs = job_by_gpu(TUNING, catalog, TODAY)
    assert set(jobs) <= {fit.gpu_id for fit in find_fits(TUNING, catalog)}
    for gpu_id in ("rtx-4090", "l40s", "h100-sxm5-80gb"):
        cost = evaluate_cost(evaluate(TUNING.evolve(gpu=gpu_id), catalog), catalog, TODAY)
        assert jobs[gpu_id].usd == cost.estimate.result.rent.usd
        assert jobs[gpu_id].hours == jobs[gpu_id].slowness == cost.estimate.demand.busy_hours
        assert jobs[gpu_id].offer.comparable
        assert jobs[gpu_id].usd_per_million_tokens == cost.estimate.result.rent.usd_per_million_tokens


def test_a_card_without_an_offer_has_a_time_but_no_cost(catalog):
    jobs = job_by_gpu(TUNING, catalog, TODAY)
    bare = [job for job in jobs.values() if job.offer is None]
    assert bare
    assert all(job.usd is None and job.usd_per_million_tokens is None and job.hours > 0 for job in bare)


def test_a_job_without_an_end_is_ranked_by_seconds_per_token(catalog):
    month = job_by_gpu(TUNING.evolve(cost=CostTerms(job=DailyHours(hours_per_day=8))), catalog, TODAY)
    job = month["l40s"]
    assert (job.period, job.slowness) == ("month", 1 / job.time.tokens_per_second)


def test_the_job_runs_on_the_plans_number_of_cards(catalog):
    plan = TUNING.evolve(
        workload=Inference(profile="vllm"), count=2, cost=CostTerms(job=Service(requests_per_day=1_000))
    )
    assert job_by_gpu(plan, catalog, TODAY)["l40s"].offer.offer.gpu_count * 1 <= 2
    mixed = TUNING.evolve(
        gpu=None,
        count=2,
        workload=Inference(gpus=(CardCount(id="rtx-4090", count=1), CardCount(id="rtx-3090", count=1))),
        cost=CostTerms(job=DailyHours(hours_per_day=1)),
    )
    assert "rtx-4090" in job_by_gpu(mixed, catalog, TODAY)


def test_the_computation_can_be_stopped(catalog):
    assert job_by_gpu(TUNING, catalog, TODAY, stop=lambda: True) is None


def test_jobs_without_a_duration_are_left_out(catalog):
    assert job_by_gpu(TUNING.evolve(cost=CostTerms(job=Run(amount=3, unit="epochs"))), catalog, TODAY) == {}


@pytest.mark.parametrize("gpu_id", ["mac-studio", "tpu-v5e"])
def test_cards_of_unknown_speed_are_left_out(catalog, gpu_id):
    assert gpu_id not in job_by_gpu(TUNING, catalog, TODAY)
