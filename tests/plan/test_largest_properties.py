"""The largest number that fits, and plans that travel, for networks and cards of every kind."""

from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from small_models import architectures, bundled, small_llama, workloads

from planner.memory.result import MemoryResult
from planner.plan.evaluate import evaluate, with_resolved_sharing
from planner.plan.memory_curve import memory_curve, plan_at_value
from planner.plan.plan import ModelChoice, Plan
from planner.plan.solve import fewest_cards, largest_allowed, largest_that_fits, on_cards
from planner.workload.workload import Inference, Training

some = settings(max_examples=25)
CARDS = st.sampled_from(("gtx-1080", "rtx-4090", "tesla-k80", "h100-sxm5-80gb"))
FIELDS = {
    "training": ("micro_batch", "sequence_length"),
    "inference": ("batch", "context_length", "prompt_length"),
}


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    choice = ModelChoice(id="own", architecture=draw(architectures()))
    return Plan(model=choice, workload=draw(workloads()), gpu=draw(st.none() | CARDS), count=draw(st.integers(1, 8)))


def memory_at(plan: Plan, field: str, value: int) -> MemoryResult:
    changes = {field: value}
    if field == "context_length" and plan.workload.prompt_length is not None:
        changes["prompt_length"] = min(plan.workload.prompt_length, value)
    return evaluate(plan.evolve(workload=plan.workload.evolve(**changes)), bundled()).memory


def passes(memory: MemoryResult, at_worst: str) -> bool:
    """Return whether it fits, or, where tight counts, at least that."""
    return memory.verdict == "fits" or (at_worst == memory.verdict == "tight" and memory.free_bytes >= 0)


@some
@given(plans())
def test_a_plan_survives_json_with_its_own_architecture(plan):
    again = Plan.model_validate_json(plan.model_dump_json())
    assert again == plan
    assert hash(again) == hash(plan)
    assert plan.evolve() == plan


@some
@given(plans())
def test_evaluation_is_a_function_of_the_plan(plan):
    first, second = evaluate(plan, bundled()), evaluate(plan.evolve(), bundled())
    assert first == second
    assert first.parameters == plan.model.architecture.parameters
    assert (first.memory.verdict is None) or plan.gpu is not None


@some
@given(plans(), st.sampled_from(("fits", "tight")), st.data())
def test_the_largest_fits_and_one_more_does_not(plan, at_worst, data):
    field = data.draw(st.sampled_from(FIELDS[plan.workload.task]))
    found = largest_that_fits(plan, bundled(), field, at_worst)
    if found.value is None:
        assert not passes(memory_at(plan, field, 1), at_worst)
        assert found.reason
        return
    memory = memory_at(plan, field, found.value)
    assert (memory.verdict, memory.total_bytes) == (found.verdict, found.total_bytes)
    assert passes(memory, at_worst)
    assert evaluate(found.plan, bundled()).memory.total_bytes == found.total_bytes
    if found.bounded_by == "memory":
        beyond = memory_at(plan, field, found.value + 1)
        at_once = found.value + 1 if field == "batch" else getattr(plan.workload, "batch", 1)
        queues = beyond.cache_pool is not None and beyond.cache_pool.sequences < at_once
        assert queues or not passes(beyond, at_worst)
    else:
        limit = plan.model.architecture.max_context if found.bounded_by == "model" else largest_allowed(plan, field)
        assert found.value == min(2**24, limit)


@some
@given(plans().filter(lambda plan: plan.gpu is not None), st.sampled_from(("fits", "tight")))
def test_the_fewest_cards_fit_and_fewer_do_not(plan, at_worst):
    found = fewest_cards(plan, bundled(), at_worst)
    assert (found.value is None) == bool(found.reason)
    assert (found.value == 1) == passes(evaluate(on_cards(plan, 1), bundled()).memory, at_worst)
    if found.value is not None:
        memory = evaluate(found.plan, bundled()).memory
        assert memory.verdict == found.verdict
        assert passes(memory, at_worst)
        assert found.plan.count == found.value
        assert bool(found.how) == (found.value > 1)


@some
@given(plans(), st.lists(st.integers(1, 5000), min_size=2, max_size=6), st.data())
def test_a_curve_never_falls_while_the_sharing_stays(plan, values, data):
    field = data.draw(st.sampled_from(FIELDS[plan.workload.task]))
    values = tuple(sorted(values))
    points = memory_curve(plan, bundled(), field, values)
    # llama.cpp shares its cells between the sequences and packs its graph anew: there, more may by chance take less.
    assume(plan.workload.task == "training" or plan.workload.profile != "llama.cpp")
    points_by_sharing = defaultdict(list)
    for value, point in zip(values, points, strict=True):
        # Cards that are replicas while these fit share the model beyond: there, each card holds less.
        plan_at_point = with_resolved_sharing(plan_at_value(plan, bundled(), field, value), bundled())
        points_by_sharing[plan_at_point.workload.parallel].append(point)
    for same_sharing in points_by_sharing.values():
        for bound in ("low_bytes", "total_bytes", "high_bytes"):
            heights = [getattr(point, bound) for point in same_sharing]
            assert heights == sorted(heights)


@pytest.mark.parametrize("workload", [Inference(), Training()])
def test_a_verdict_never_improves_as_the_workload_grows(workload):
    field = "context_length" if workload.task == "inference" else "sequence_length"
    ranks = {"fits": 0, "tight": 1, "does-not-fit": 2}
    model = ModelChoice(id="own", architecture=small_llama(num_hidden_layers=32, hidden_size=1024))
    plan = Plan(model=model, gpu="gtx-1080", workload=workload)
    found = [memory_at(plan, field, 2**n) for n in range(24)]
    seen = [ranks[memory.verdict] for memory in found]
    assert seen == sorted(seen)
    assert set(seen) >= {0, 2}
    chances = [memory.fit_probability for memory in found]
    assert chances == sorted(chances, reverse=True)


def test_a_model_from_a_file_keeps_its_path_in_the_plan():
    model = small_llama()
    choice = ModelChoice.of_file("mine", model, Path("nets") / "config.json")
    assert (choice.id, choice.architecture, choice.path) == ("mine", model, str(Path("nets") / "config.json"))
    assert ModelChoice.of_file("a\udcff", model, Path("b\udcff")).path == "b?"
