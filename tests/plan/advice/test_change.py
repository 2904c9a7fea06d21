"""Every record of the tables names fields and values that the workload has."""

import pytest
from pydantic import ValidationError

from planner.plan.advice.advise import CHANGES
from planner.plan.advice.change import COSTS, RISKS, PlanChange
from planner.plan.advice.inference_changes import INFERENCE_CHANGES, PIPELINE_CHANGES
from planner.plan.advice.search import apply_change
from planner.plan.advice.software import PROGRAM_CHANGES
from planner.plan.plan import ModelChoice, Plan
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference, Training

LLAMA = ModelChoice(id="meta-llama/Llama-3.1-8B")


def with_fields(workload, fields):
    """Return `workload` with `fields`, of which those with a dot are of a part."""
    for path, value in fields.items():
        outer, _, inner = path.partition(".")
        changes = {outer: getattr(workload, outer).evolve(**{inner: value}) if inner else value}
        workload = workload.evolve(**changes)
    return workload


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_a_change_can_be_made_where_it_applies(change: PlanChange):
    fields = {name: values[-1] for name, values in change.applies.items()}
    answers = change in (*INFERENCE_CHANGES, *PIPELINE_CHANGES, *PROGRAM_CHANGES)
    base = Inference() if answers and change.applies.get("task") != ("training",) else Training()
    try:
        workload = with_fields(base, {**fields, "parallel.data": 2} if change.shares_states else fields)
        made = apply_change(Plan(model=LLAMA, workload=workload), change)
    except ValidationError as error:
        if "is not estimated yet" not in str(error):
            raise
        return
    assert change.applies_to(workload, None)
    assert made.workload != workload


def test_every_change_has_a_source_for_its_cost():
    assert all(change.source and change.sentence.endswith(".") for change in CHANGES)
    assert all(change.cost in COSTS and change.risk in RISKS and change.applies for change in CHANGES)
    assert all(change.costs for change in CHANGES if change.slower_by_about is None or change.cost == "less")
    assert len({change.name for change in CHANGES}) == len(CHANGES)


@pytest.mark.parametrize("open_workload", [Inference(), Inference(profile="vllm"), Training()])
def test_no_change_applies_to_the_other_task(catalog, open_workload):
    workload = with_defaults(open_workload, catalog.models.model(LLAMA.id), 1)
    applying = [change for change in CHANGES if change.applies_to(workload, None)]
    assert applying
    for change in applying:
        assert all(name in type(workload).model_fields for name in change.settings)
