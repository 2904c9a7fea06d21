import pytest

from planner.cost.terms import Service
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.plan.serving.job_traffic import (
    in_groups,
    job_targets,
    job_traffic,
    job_with_preset,
    served_plan,
    with_replicas,
)
from planner.serving.traffic import FixedLength, load_traffic_presets
from planner.workload.training import Training
from planner.workload.workload import Inference

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
