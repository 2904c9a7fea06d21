"""Cards for a service: replicas, how busy they are, and how long requests wait."""

import pytest
from pydantic import ValidationError
from small_models import bundled

from planner.performance.inference.estimate import run_of
from planner.performance.inference.service import Demand, serve, wait_seconds
from planner.performance.setting import TimeSetting
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference

DEMAND = Demand(requests_per_day=1e6, prompt_tokens=500, answer_tokens=300)


def run():
    architecture = bundled().models.model("meta-llama/Llama-3.1-8B")
    workload = with_defaults(Inference(profile="vllm"), architecture, 1)
    return run_of(architecture, workload, bundled().hardware.gpu("h100-sxm5-80gb"), TimeSetting())


def test_replicas_carry_the_peak_with_some_to_spare():
    found = serve(run(), "bf16", 80e9, DEMAND)
    assert DEMAND.peak_per_second == pytest.approx(1e6 * 3 / 86_400)
    assert found.peak_utilization_fraction <= 0.8
    one_less = found.requests_per_second * (found.replicas - 1) / found.replicas
    assert DEMAND.peak_per_second / one_less > 0.8
    assert found.mean_utilization_fraction == pytest.approx(found.peak_utilization_fraction / 3)
    assert found.cards == found.replicas


def test_more_requests_take_more_cards():
    few = serve(run(), "bf16", 80e9, DEMAND)
    many = serve(run(), "bf16", 80e9, DEMAND.evolve(requests_per_day=1e7))
    assert many.cards > 5 * few.cards


def test_a_limit_on_tokens_takes_fewer_sequences_and_more_cards():
    free = serve(run(), "bf16", 80e9, DEMAND)
    quick = serve(run(), "bf16", 80e9, DEMAND.evolve(slowest_token_seconds=0.012))
    assert quick.output_token_seconds <= 0.012 < free.output_token_seconds
    assert quick.sequences < free.sequences
    assert quick.requests_per_second / quick.replicas < free.requests_per_second / free.replicas
    loose = serve(run(), "bf16", 80e9, DEMAND.evolve(slowest_token_seconds=10.0))
    assert loose == free


def test_there_is_a_reason_where_there_is_no_way():
    assert "longer than 0.001 s" in serve(run(), "bf16", 80e9, DEMAND.evolve(slowest_token_seconds=0.001)).reason
    assert "do not fit" in serve(run(), "bf16", 10e9, DEMAND).reason


def test_waits_of_erlangs_formula():
    # One place, half busy: a request of one second waits one second on average (M/M/1).
    assert wait_seconds(0.5, 1.0, 1) == pytest.approx(1.0)
    # Two places, each half busy: C(2, 1) = 1/3, and 1/3 · 1 / (2 − 1) of a second.
    assert wait_seconds(1.0, 2.0, 2) == pytest.approx(1 / 3)
    assert wait_seconds(1.0, 2.0, 2) > wait_seconds(0.5, 2.0, 2)


@pytest.mark.parametrize("field", ["requests_per_day", "peak_factor", "busy_fraction", "answer_tokens"])
def test_absurd_demands_are_refused(field):
    with pytest.raises(ValidationError):
        DEMAND.evolve(**{field: 0})
