"""Several models on the same cards: what each gets, by hand."""

import pytest
from small_models import bundled

from planner.errors import SpecError
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.plan.shared_gpus import share_gpus
from planner.units import ceil_div
from planner.workload.training import Training
from planner.workload.workload import Inference

LARGE = "meta-llama/Llama-3.1-8B"
SMALL = "Qwen/Qwen3-0.6B"


def served(model=LARGE, gpu="h100-sxm5-80gb", profile="vllm", count=1, **fields):
    workload = Inference(profile=profile, context_length=2048, **fields)
    return Plan(model=ModelChoice(id=model), gpu=gpu, count=count, workload=workload)


def test_a_neighbour_gets_what_it_needs_and_the_plan_the_rest():
    alone = evaluate(served(SMALL), bundled()).memory
    hundredths = ceil_div(100 * alone.total_bytes, alone.capacity_bytes)
    found = share_gpus(served(), [served(SMALL)], bundled())
    (small,) = found.neighbours
    assert small.fraction == hundredths / 100
    assert small.held_bytes == int(small.fraction * alone.capacity_bytes)
    assert found.plan.workload.other_processes_bytes == small.held_bytes
    assert found.plan.workload.engine.memory_utilization == pytest.approx(0.92 - small.fraction, abs=0.011)
    (other,) = found.others
    assert other.workload.engine.memory_utilization == small.fraction
    mine = int(found.plan.workload.engine.memory_utilization * alone.capacity_bytes)
    assert other.workload.other_processes_bytes == mine
    assert evaluate(found.plan, bundled()).memory.verdict == evaluate(other, bundled()).memory.verdict == "fits"


def test_fractions_that_plans_set_are_kept():
    """vLLM's documentation of gpu_memory_utilization: two instances on one GPU, 0.5 for each; here 0.46 each."""
    half = {"engine": {"memory_utilization": 0.46}}
    found = share_gpus(served(**half), [served(**half)], bundled())
    assert [neighbour.fraction for neighbour in found.neighbours] == [0.46]
    assert found.plan.workload.engine.memory_utilization == 0.46
    both = (found.plan, *found.others)
    assert [evaluate(plan, bundled()).memory.verdict for plan in both] == ["fits", "fits"]


def test_each_further_model_gets_what_the_others_leave():
    found = share_gpus(served(), [served(SMALL), served(SMALL), served(SMALL)], bundled())
    total = evaluate(served(), bundled()).memory.capacity_bytes
    held = sum(neighbour.held_bytes for neighbour in found.neighbours)
    assert found.plan.workload.other_processes_bytes == held
    assert [other.workload.other_processes_bytes for other in found.others] == [
        held - neighbour.held_bytes + int(found.plan.workload.engine.memory_utilization * total)
        for neighbour in found.neighbours
    ]


def test_a_program_without_such_a_fraction_holds_its_need():
    found = share_gpus(served(profile="llama.cpp", weights="Q4_K_M"), [served(SMALL, profile="hf")], bundled())
    assert found.plan.workload.engine.explicit_names() == ()
    assert found.neighbours[0].program == "hf"
    training = Plan(model=ModelChoice(id=SMALL), workload=Training(method="lora"))
    found = share_gpus(training.evolve(gpu="h100-sxm5-80gb"), [training], bundled())
    assert found.plan.workload.other_processes_bytes == found.neighbours[0].held_bytes > 0


def test_a_model_that_does_not_fit_beside_the_others_is_told():
    found = share_gpus(served(), [served("meta-llama/Llama-3.1-70B")], bundled())
    assert found.neighbours[0].verdict == "does-not-fit"
    assert found.plan.workload.engine.memory_utilization == 0.01


@pytest.mark.parametrize(
    ("gpu", "message"), [(None, "GPUs of one kind"), ("radeon-680m", "usable memory of these GPUs is unknown")]
)
def test_cards_have_to_be_known(gpu, message):
    with pytest.raises(SpecError, match=message):
        share_gpus(served(gpu=gpu, profile="hf"), [served(SMALL)], bundled())
