import pytest

from planner.errors import SpecError
from planner.plan.catalog import load_catalog
from planner.plan.plan import ModelChoice, Plan
from planner.plan.solve import largest_allowed, largest_that_fits
from planner.workload.workload import Inference

TINY = Plan(model=ModelChoice(id="prajjwal1/bert-tiny"), gpu="h200-sxm-141gb", workload=Inference(context_length=1))


def test_the_workload_bounds_what_can_be_asked():
    assert largest_allowed(TINY, "batch") == 1_000_000
    assert largest_allowed(TINY, "context_length") == 100_000_000


def test_a_field_of_the_other_task_is_named():
    with pytest.raises(SpecError, match="micro_batch"):
        largest_allowed(TINY, "micro_batch")


def test_the_largest_that_fits_stays_within_the_bound():
    catalog = load_catalog()
    smallest = min(catalog.models.records, key=lambda record: record.parameters)
    plan = Plan(model=ModelChoice(id=smallest.id), gpu="h200-sxm-141gb", workload=Inference(context_length=1))
    largest = largest_that_fits(plan, catalog, "batch")
    assert isinstance(largest.value, int)
    assert largest.value <= largest_allowed(plan, "batch")
