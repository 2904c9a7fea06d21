"""The service of a plan on its own cards, and over its rate."""

import pytest
from served_traffic import CHAT, plan_on
from small_models import bundled

from planner.cost.terms import Service
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.plan.serving.service_simulation import (
    in_groups,
    job_targets,
    job_traffic,
    job_with_preset,
    served_plan,
    serving_curve,
    simulate_serving,
    with_replicas,
    with_room_for,
)
from planner.serving.deployment import ServingSetup
from planner.serving.targets import Targets, parse_latency_target
from planner.serving.traffic import ConcurrentClients, FixedLength, Sessions, load_traffic_presets
from planner.trace.recording import TracedFacts
from planner.workload.training import Training
from planner.workload.workload import Inference


def test_a_plans_replicas_answer_its_traffic():
    targets = Targets(limits=(parse_latency_target("ttft", "p95=2s"),))
    found = simulate_serving(plan_on("l40s", 2), bundled(), CHAT, targets, requests=100, ranges=False)
    assert (found.replicas, found.cards, found.requests) == (2, 2, 100)
    assert found.holds
    assert simulate_serving(plan_on(), bundled(), CHAT, requests=50, stop=lambda: True) is None


def test_the_reason_is_said_where_there_is_no_service():
    def reason(plan):
        return simulate_serving(plan, bundled(), CHAT, requests=5).unsupported

    plan = plan_on()
    assert reason(plan.evolve(gpu=None)) == "the plan has no GPU"
    assert "this plan trains" in reason(plan.evolve(workload=Training()))
    unequal = plan.workload.evolve(gpus=({"id": "l40s", "count": 1}, {"id": "rtx-4090", "count": 1}))
    assert "several kinds" in reason(plan.evolve(count=2, workload=unequal))


def test_separate_replicas_are_not_simulated_for_requests_that_follow_each_other():
    split = ServingSetup(disaggregation={"prefill_replicas": 1, "decode_replicas": 1})
    for traffic in (
        CHAT.evolve(sessions=Sessions(turns=2)),
        CHAT.evolve(arrivals=ConcurrentClients(clients=3)),
    ):
        found = simulate_serving(plan_on("l40s", 2), bundled(), traffic, setup=split, requests=5)
        assert "do not follow each other" in found.unsupported


def test_a_traced_module_has_no_service(monkeypatch):
    traced = Plan.model_construct(
        **{**dict(plan_on()), "model": plan_on().model.model_copy(update={"trace": object()})}
    )
    assert "no decoding steps" in simulate_serving(traced, bundled(), CHAT, requests=5).unsupported
    assert TracedFacts is not None


def test_the_context_is_that_of_the_longest_request_unless_the_plan_states_one():
    assert with_room_for(plan_on(), CHAT, 5, 0).workload.context_length == 768
    own = plan_on(context_length=4_096)
    assert with_room_for(own, CHAT, 5, 0) is own
    stated = with_room_for(plan_on(prompt_length=2_000), CHAT, 5, 0).workload
    assert (stated.context_length, stated.prompt_length) == (2_000, 2_000)
    training = plan_on().evolve(workload=Training())
    assert with_room_for(training, CHAT, 5, 0) is training


def test_a_curve_over_the_rate():
    points = list(serving_curve(plan_on(), bundled(), CHAT, rates=(1.0, 4.0), requests=60))
    assert [point.requests_per_second for point in points] == [1.0, 4.0]
    first, last = (point.simulation.latency("e2e").mean_seconds for point in points)
    assert last > first
    shares = [point.requests_per_second / 4 for point in serving_curve(plan_on(), bundled(), CHAT, requests=5)]
    assert shares == pytest.approx([0.25, 0.5, 0.7, 0.85, 1.0, 1.1, 1.25, 1.5])
    clients = CHAT.evolve(arrivals=ConcurrentClients(clients=3))
    assert list(serving_curve(plan_on(), bundled(), clients, requests=5)) == []
    assert list(serving_curve(plan_on(), bundled(), CHAT, requests=5, stop=lambda: True)) == []


PRESETS = load_traffic_presets()
PLAN = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), workload=Inference(profile="vllm"), gpu="l40s")


def test_a_service_is_simulated_at_its_peak_with_equal_lengths():
    traffic = job_traffic(Service(requests_per_day=86_400, prompt_tokens=0, output_tokens=12, peak_factor=3), PRESETS)
    assert traffic.requests_per_second == 3
    assert (traffic.input, traffic.output) == (FixedLength(tokens=1), FixedLength(tokens=12))


def test_hourly_shares_take_the_place_of_the_peak_factor():
    shares = (0.0,) * 12 + (1.0,) * 12
    traffic = job_traffic(Service(requests_per_day=86_400, hourly_shares=shares, peak_factor=9), PRESETS)
    assert traffic.requests_per_second == 2
    agents = Service(requests_per_day=86_400, hourly_shares=shares, traffic_preset="agents")
    assert job_traffic(agents, PRESETS).requests_per_second == pytest.approx(2)


@pytest.mark.parametrize("preset", PRESETS, ids=[preset.id for preset in PRESETS])
def test_a_preset_brings_its_lengths_and_targets_at_the_rate_of_the_job(preset):
    job = job_with_preset(Service(requests_per_day=86_400), preset)
    traffic = job_traffic(job, PRESETS)
    assert traffic.requests_per_second == pytest.approx(2)
    assert (traffic.input, traffic.output) == (preset.traffic.input, preset.traffic.output)
    assert job.prompt_tokens > 1
    assert {(limit.latency, limit.seconds) for limit in job_targets(job).limits} == {
        (limit.latency, limit.seconds) for limit in preset.targets.limits
    }


def test_a_preset_keeps_targets_that_were_entered():
    job = job_with_preset(Service(requests_per_day=100, ttft_seconds=9), PRESETS[0])
    assert (job.ttft_seconds, job.tpot_seconds) == (9, None)
    assert job_with_preset(job, None).traffic_preset is None


def test_targets_are_those_that_were_entered():
    job = Service(requests_per_day=1, ttft_seconds=1, tpot_seconds=0.05, e2e_seconds=20, latency_percentile=99)
    assert [limit.title for limit in job_targets(job).limits] == [
        "p99 time to first token",
        "p99 mean time between tokens of a request",
        "p99 time to the last token",
    ]


def test_a_service_without_a_program_runs_in_vllm():
    assert served_plan(PLAN.evolve(workload=Inference())).workload.profile == "vllm"
    assert served_plan(PLAN.evolve(workload=Inference(profile="llama.cpp"))).workload.profile == "llama.cpp"
    training = PLAN.evolve(workload=Training())
    assert served_plan(training) == training


def test_replicas_multiply_the_cards(catalog):
    assert with_replicas(PLAN, 3).count == 3
    assert with_replicas(PLAN, 3).workload.parallel.data == 3
    two = evaluate(PLAN.evolve(count=2, workload=Inference(profile="vllm", parallel={"tensor": 2})), catalog)
    grouped = in_groups(two, 4)
    assert (grouped.count, grouped.workload.parallel.data, grouped.workload.parallel.tensor) == (8, 4, 2)
