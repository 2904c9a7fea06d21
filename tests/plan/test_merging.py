"""Two versions of a document become one, unless both changed the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.plan.merging import changed_fields, merge_plans, merge_values
from planner.plan.plan import ModelChoice, Plan
from planner.workload.training import Training
from planner.workload.workload import Inference

BASE = Plan(model=ModelChoice(id="openai-community/gpt2"), workload=Inference(batch=2), gpu="rtx-4090")
LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["a", "b"]) | st.lists(st.integers(0, 3))
VALUES = st.recursive(LEAVES, lambda inner: st.dictionaries(st.sampled_from("xyz"), inner, max_size=3), max_leaves=6)


def test_changes_of_different_fields_are_put_together():
    ours = BASE.evolve(count=3)
    theirs = BASE.evolve(workload=BASE.workload.evolve(batch=5), gpu="rtx-3090")
    assert merge_plans(BASE, ours, theirs) == (theirs.evolve(count=3), ())


def test_changes_of_the_same_field_conflict_unless_they_are_the_same():
    ours, theirs = BASE.evolve(count=3, gpu="rtx-3090"), BASE.evolve(count=4, gpu="rtx-3090")
    assert merge_plans(BASE, ours, theirs) == (None, ("count",))
    assert merge_plans(BASE, ours, ours) == (ours, ())


def test_a_field_that_the_other_version_no_longer_has_conflicts():
    ours = BASE.evolve(workload=Training())
    theirs = BASE.evolve(workload=BASE.workload.evolve(batch=5))
    assert merge_plans(BASE, ours, theirs) == (None, ("workload.batch",))


def test_changes_that_are_not_valid_together_conflict():
    base = BASE.evolve(count=2)
    kinds = [{"id": "rtx-4090", "count": 1}, {"id": "rtx-3090", "count": 1}]
    ours = Plan.model_validate({**base.model_dump(), "workload": {**base.workload.model_dump(), "gpus": kinds}})
    theirs = base.evolve(count=3)
    plan, conflicts = merge_plans(base, ours, theirs)
    assert plan is None
    assert set(conflicts) == {"workload.gpus", "count"} == set(changed_fields(ours, theirs))


def test_lists_without_order_keep_what_both_sides_added_and_removed():
    sets = {"recent", "of.it"}
    base = {"recent": ["a", "b", "c"], "of": {"it": [1]}, "order": [1, 2]}
    ours = {"recent": ["new", "a", "c"], "of": {"it": [1, 2]}, "order": [2, 1]}
    theirs = {"recent": ["other", "a", "b"], "of": {"it": [3]}, "order": [1, 2, 3]}
    assert merge_values(base, ours, theirs, sets) == (
        {"recent": ["new", "other", "a"], "of": {"it": [2, 3]}, "order": [2, 1]},
        ("order",),
    )
    assert merge_values({}, {"recent": [1]}, {"recent": [2]}, sets).value == {"recent": [1, 2]}


def test_a_removed_field_stays_away_and_an_unknown_one_stays():
    assert merge_values({"a": 1, "b": 1}, {"b": 1}, {"a": 1, "b": 2, "newer": 3}) == ({"b": 2, "newer": 3}, ())
    assert merge_values({"a": 1}, {}, {"a": 2}) == ({}, ("a",))


@pytest.mark.sweep
@given(base=VALUES, ours=VALUES, theirs=VALUES)
def test_a_side_without_changes_leaves_the_other_as_it_is(base, ours, theirs):
    assert merge_values(base, ours, base) == (ours, ())
    assert merge_values(base, base, theirs) == (theirs, ())
    assert merge_values(base, ours, ours) == (ours, ())
    one, other = merge_values(base, ours, theirs), merge_values(base, theirs, ours)
    assert sorted(one.conflicts) == sorted(other.conflicts)
    if not one.conflicts:
        assert one.value == other.value
