"""What a plan and its job cost, or why that cannot be said."""

from datetime import date

import pytest

from planner.cost.terms import BuyTerms, CostTerms, DailyHours, Run, Service
from planner.plan.catalog import Catalog, load_catalog
from planner.plan.cost import evaluate_cost, job_by_gpu, linked_cards, paid_cards, plan_throughput
from planner.plan.evaluate import evaluate, find_fits
from planner.plan.plan import ModelChoice, Plan
from planner.workload.parallel import CardCount, Parallel
from planner.workload.workload import Inference, Training

TODAY = date(2026, 11, 22)
SERVING = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), gpu="rtx-4090")


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


def test_the_plans_card_has_costs_of_renting_and_owning(catalog):
    cost = evaluate_cost(evaluate(SERVING, catalog), catalog, TODAY)
    assert cost.estimate.result.rent.gpu_count == 1
    assert cost.estimate.result.own.gpu == "rtx-4090"
    assert cost.estimate.result.answer.decision in ("rent", "buy")


@pytest.mark.parametrize(
    ("changes", "reason", "field"),
    [
        ({"gpu": None}, "The plan has no GPU", "gpu"),
        (
            {
                "gpu": None,
                "count": 2,
                "workload": Inference(gpus=(CardCount(id="rtx-4090", count=1), CardCount(id="rtx-3090", count=1))),
            },
            "a mix of different GPUs",
            "workload.gpus",
        ),
        (
            {"cost": CostTerms(job=Run(amount=3, unit="epochs"))},
            "The size of an epoch is missing",
            "cost.job.dataset_samples",
        ),
    ],
)
def test_a_plan_without_a_cost_has_a_reason(catalog, changes, reason, field):
    cost = evaluate_cost(evaluate(SERVING.evolve(**changes), catalog), catalog, TODAY)
    assert cost.estimate is None
    assert reason in cost.reason
    assert cost.field == field


def _machine_notes(catalog: Catalog, **changes: object) -> list[str]:
    cost = evaluate_cost(evaluate(SERVING.evolve(**changes), catalog), catalog, TODAY)
    return [note for note in cost.estimate.result.own.notes if "sold as one" in note]


def test_cards_that_are_also_sold_as_one_machine_name_both_prices(catalog):
    (undated,) = _machine_notes(catalog, gpu="a100-sxm4-80gb", count=4)
    assert "99,600 USD for GPUs and host" in undated
    assert "DGX Station A100 320 GB, 149,000 USD (list price, no date)" in undated


def test_full_servers_are_priced_as_such_and_need_no_note(catalog):
    assert _machine_notes(catalog, gpu="a100-sxm4-80gb", count=8) == []
    own = evaluate_cost(evaluate(SERVING.evolve(gpu="a100-sxm4-80gb", count=8), catalog), catalog, TODAY).estimate
    assert {term.name: term.usd for term in own.result.own.upfront} == {"servers": 232_000}


@pytest.mark.parametrize(
    ("changes", "linked"),
    [
        ({"count": 4}, 1),
        ({"count": 4, "workload": Inference(parallel=Parallel(tensor=2))}, 2),
        ({"count": 4, "workload": Training()}, 4),
    ],
)
def test_only_cards_that_work_together_are_linked(catalog, changes, linked):
    plan = SERVING.evolve(model=ModelChoice(id="gpt2"), workload=Inference(parallel=Parallel(tensor=1))).evolve(
        **changes
    )
    assert linked_cards(evaluate(plan, catalog)) == linked


def test_without_a_machine_of_these_cards_or_with_a_price_of_ones_own_there_is_no_such_note(catalog):
    assert _machine_notes(catalog) == []
    assert _machine_notes(catalog, gpu="a100-sxm4-80gb", count=3) == []
    priced = CostTerms(buy=BuyTerms(server_price_usd=300_000))
    assert _machine_notes(catalog, gpu="a100-sxm4-80gb", count=8, cost=priced) == []


def test_where_owning_is_not_known_no_machine_is_named(catalog):
    estimate = evaluate_cost(evaluate(SERVING.evolve(gpu="b300-sxm-288gb", count=8), catalog), catalog, TODAY).estimate
    assert estimate.result.own is None
    assert not any("sold as one" in note for note in estimate.result.notes)


def test_without_a_card_there_is_no_throughput(catalog):
    assert plan_throughput(evaluate(SERVING.evolve(gpu=None), catalog)) is None
    assert plan_throughput(evaluate(SERVING, catalog)).tokens_per_second


def test_a_service_runs_as_many_requests_at_once_as_fit(catalog):
    served = SERVING.evolve(gpu="h100-sxm5-80gb", workload=Inference(profile="vllm"))
    plan = served.evolve(cost=CostTerms(job=Service(requests_per_day=1e6, prompt_tokens=500, output_tokens=300)))
    alone, batched = plan_throughput(evaluate(served, catalog)), plan_throughput(evaluate(plan, catalog))
    assert batched.concurrent_requests == 256
    # A step of one token each takes some 20 ms: 16 GB of weights and 256 caches of 650 tokens at 3.35 TB a second.
    assert 20 * alone.tokens_per_second < batched.tokens_per_second < 15_000
    assert batched.requests_per_second(500, 300) == pytest.approx(batched.samples_per_second)
    cost = evaluate_cost(evaluate(plan, catalog), catalog, TODAY)
    assert cost.estimate.demand.groups < 5
    assert any("the mean wait is" in note for note in cost.estimate.result.notes)


def test_a_measured_speed_is_not_adjusted_for_a_service(catalog):
    job = Service(requests_per_day=1e6, prompt_tokens=0)
    measured = {"measured": {"value": 5_000, "unit": "tokens/s"}}
    plan = SERVING.evolve(workload=Inference(profile="vllm"), cost=CostTerms(job=job), timing=measured)
    assert plan_throughput(evaluate(plan, catalog)).tokens_per_second == pytest.approx(5_000)
    assert plan_throughput(evaluate(plan.evolve(timing={}), catalog)).prompt_token_seconds == 0


def test_services_of_images_or_on_mixed_cards_keep_the_estimated_throughput(catalog):
    job = CostTerms(job=Service(requests_per_day=1e4))
    image = Plan(model=ModelChoice(id="stable-diffusion-v1-5/stable-diffusion-v1-5"), gpu="rtx-4090", cost=job)
    assert plan_throughput(evaluate(image, catalog)).samples_per_second
    kinds = Inference(gpus=(CardCount(id="rtx-4090", count=1), CardCount(id="rtx-3090", count=1)))
    mixed = SERVING.evolve(gpu=None, count=2, workload=kinds, cost=job)
    assert plan_throughput(evaluate(mixed, catalog)).tokens_per_second


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"workload": Training()}, "does-not-fit"),
        ({"gpu": "tpu-v5e"}, "not-supported"),
        ({"gpu": "a10g"}, "speed-unknown"),
    ],
)
def test_a_plan_that_cannot_run_gets_no_decision(catalog, changes, code):
    cost = evaluate_cost(evaluate(SERVING.evolve(**changes), catalog), catalog, TODAY)
    result = cost.estimate.result
    assert cost.blocked == result.blocked
    assert result.blocked.code == code
    assert result.answer is result.break_even is None
    assert result.curve == ()
    if code == "does-not-fit":
        assert result.blocked.needed_bytes > result.blocked.usable_bytes > 23 * 2**30
        assert result.rent.usd > 0


def test_a_job_in_tokens_of_unknown_speed_is_blocked_without_costs(catalog):
    terms = CostTerms(job=Run(amount=1e9, unit="tokens"))
    cost = evaluate_cost(evaluate(SERVING.evolve(gpu="a10g", cost=terms), catalog), catalog, TODAY)
    assert cost.estimate is None
    assert cost.blocked.code == "speed-unknown"


def test_a_service_of_a_plan_that_trains_is_refused(catalog):
    plan = SERVING.evolve(
        model=ModelChoice(id="gpt2"), workload=Training(), cost=CostTerms(job=Service(requests_per_day=5))
    )
    cost = evaluate_cost(evaluate(plan, catalog), catalog, TODAY)
    assert (cost.estimate, cost.field) == (None, "cost.job")
    assert "A service needs a plan for inference, and this plan trains" in cost.reason
    assert "Set the task to inference" in cost.reason


def test_cards_that_generate_completions_are_paid_for(catalog):
    alignment = {"method": "grpo", "engine": "other-cards", "engine_cards": 3}
    apart = Plan(model=ModelChoice(id="openai-community/gpt2"), workload=Training(micro_batch=8, alignment=alignment))
    assert (paid_cards(apart), paid_cards(SERVING)) == (4, 1)
    assert (
        evaluate_cost(evaluate(apart.evolve(gpu="rtx-4090"), catalog), catalog, TODAY).estimate.result.rent.gpu_count
        == 4
    )


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
