"""One plan beside another."""

import pytest
from recordings import training, two_steps

from planner.errors import SpecError
from planner.plan.comparison import versus
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.trace.analysis.memory import facts_of
from planner.units import GIB
from planner.workload.parallel import CardCount
from planner.workload.training import Lora
from planner.workload.workload import Inference, Parallel, Training

LLAMA = ModelChoice(id="meta-llama/Llama-3.1-8B")
READING = Plan(model=LLAMA, gpu="rtx-4090")
LEARNING = Plan(model=LLAMA, workload=Training(method="lora"), gpu="rtx-4090")


def told(found):
    return {one.field: (one.value, one.other) for one in found.settings}


def test_a_plan_compared_with_itself_has_no_differences(catalog):
    found = versus(READING, READING, catalog)
    assert found.settings == ()
    assert found.total_difference_bytes == 0
    assert all(term.difference_bytes == 0 for term in found.terms)
    assert all(phase.bytes == phase.other_bytes for phase in found.phases)


@pytest.mark.parametrize(
    ("plan", "other"), [(READING, LEARNING), (LEARNING, LEARNING.evolve(workload=Training(method="qlora")))]
)
def test_the_differences_of_the_terms_sum_to_that_of_the_totals(catalog, plan, other):
    found = versus(plan, other, catalog)
    total, beside = (evaluate(one, catalog).memory.total_bytes for one in (plan, other))
    assert found.total_difference_bytes == total - beside
    assert sum(term.difference_bytes for term in found.terms) == total - beside
    assert sum(term.bytes for term in found.terms) == total
    assert sum(term.other_bytes for term in found.terms) == beside
    assert found.other == evaluate(other, catalog)


def test_different_settings_are_listed_with_defaults_filled_in(catalog):
    other = READING.evolve(workload=Inference(batch=4, context_length=4096), gpu="tesla-t4", count=2)
    assert told(versus(READING, other, catalog)) == {
        "gpu": ("rtx-4090", "tesla-t4"),
        "count": (1, 2),
        "batch": (1, 4),
        "parallel.pipeline": (1, 2),
    }


def test_nested_settings_have_dotted_names(catalog):
    other = LEARNING.evolve(
        workload=Training(method="lora", lora=Lora(rank=64, targets=("q_proj", "v_proj")), parallel=Parallel(zero=3)),
        count=8,
    )
    assert told(versus(LEARNING, other, catalog)) == {
        "count": (1, 8),
        "lora.rank": (16, 64),
        "lora.targets": ("all-linear", "q_proj, v_proj"),
        "parallel.zero": (0, 3),
    }


def test_replicas_are_listed_only_if_set(catalog):
    spread = READING.evolve(count=2, workload=Inference(parallel=Parallel(tensor=2)))
    asked = READING.evolve(count=2, workload=Inference(parallel=Parallel(data=2)))
    assert told(versus(spread, asked, catalog)) == {"parallel.tensor": (2, 1)}
    assert told(versus(asked, READING.evolve(workload=Inference(parallel=Parallel(data=1))), catalog)) == {
        "count": (2, 1),
        "parallel.data": (2, 1),
    }


def test_plans_of_different_tasks_are_compared_by_their_common_fields(catalog):
    found = told(versus(READING, LEARNING.evolve(workload=Training(sequence_length=512)), catalog))
    assert found["task"] == ("inference", "training")
    assert "sequence_length" not in found
    phases = {phase.name: (phase.bytes, phase.other_bytes) for phase in versus(READING, LEARNING, catalog).phases}
    assert phases["decode"][1] is None
    assert phases["backward"][0] is None
    assert None not in phases["load"]


def test_cards_of_several_kinds_are_one_setting(catalog):
    cards = (CardCount(id="rtx-4090"), CardCount(id="tesla-t4", count=2))
    other = Plan(model=LLAMA, workload=Inference(parallel=Parallel(pipeline=3), gpus=cards))
    assert told(versus(READING, other, catalog)) == {
        "gpu": ("rtx-4090", "1 × rtx-4090 + 2 × tesla-t4"),
        "count": (1, 3),
        "parallel.pipeline": (1, 3),
    }


def test_a_plan_that_cannot_be_evaluated_is_refused(catalog):
    with pytest.raises(SpecError):
        versus(READING, READING.evolve(model=ModelChoice(id="nobody/nothing")), catalog)


def test_plans_of_traces_are_compared_by_their_hardware(catalog):
    traced = Plan(model=ModelChoice.of_trace(facts_of(two_steps(GIB, training()))), gpu="tesla-t4")
    assert set(told(versus(traced, READING, catalog))) == {"model", "gpu"}
