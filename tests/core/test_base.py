from functools import cached_property

import pytest
from pydantic import ValidationError

from planner.base import Spec, record
from planner.errors import SpecError
from planner.hardware.gpu import Provenance
from planner.plan.plan import Plan
from planner.workload.workload import Inference, Parallel, Training

READ = Provenance(basis="published", certainty="confirmed", source="a datasheet", as_of="2026-11-21")


def test_a_spec_is_frozen():
    with pytest.raises(ValidationError, match="frozen"):
        Parallel().data = 2


def test_an_unknown_field_is_refused():
    with pytest.raises(SpecError, match=r"tensors: there is no such field\. Close names: tensor\."):
        Parallel(tensors=2)
    with pytest.raises(SpecError, match=r"quux: there is no such field\. Check its spelling\."):
        Parallel(quux=2)
    with pytest.raises(SpecError, match=r"model\.od: there is no such field\. Check its spelling\."):
        Plan(model={"id": "x", "od": "y"})


def test_evolving_changes_what_is_named_and_nothing_else():
    changed = Training(micro_batch=4).evolve(optimizer="sgd")
    assert (changed.micro_batch, changed.optimizer) == (4, "sgd")


def test_evolving_validates_the_whole():
    with pytest.raises(SpecError, match="micro_batch: must be at least 1, not 0"):
        Training().evolve(micro_batch=0)
    with pytest.raises(SpecError, match=r"microbatch: there is no such field\. Close names: micro_batch\."):
        Training().evolve(microbatch=1)
    with pytest.raises(SpecError, match="formula"):
        READ.evolve(basis="derived")


def test_evolving_after_a_cached_property_was_read():
    workload = Training()
    hash(workload)
    assert workload.evolve(micro_batch=2).micro_batch == 2


def test_equal_specs_hash_alike_and_others_differ():
    assert hash(Inference(batch=3)) == hash(Inference(batch=3))
    assert Inference(batch=3) == Inference().evolve(batch=3)
    assert Inference(batch=3) != Inference(batch=4)
    assert hash(Inference(batch=3)) != hash(Inference(batch=4))


def test_a_spec_is_a_key_of_caches():
    assert {Inference(): "default"}[Inference()] == "default"


def test_replacing_applies_no_rule_and_forgets_what_was_cached():
    workload = Training(optimizer="soap")
    hash(workload)
    replaced = workload.replaced(compute="bf16", weights="bf16")
    assert (replaced.compute, replaced.optimizer) == ("bf16", "soap")
    assert hash(replaced) != hash(workload)


class Box(Spec):
    width: int

    @cached_property
    def area(self) -> int:
        return self.width**2


class Crate(Spec):
    width: int


class Counted:
    """A value that counts how often it is hashed."""

    def __init__(self):
        self.hashed = 0

    def __hash__(self):
        self.hashed += 1
        return 7


class Holder(Spec, arbitrary_types_allowed=True):
    item: Counted


def test_what_was_read_or_hashed_does_not_break_equality():
    used, fresh = Box(width=2), Box(width=2)
    assert used.area == 4
    hash(used)
    assert used == fresh
    assert fresh == used
    assert hash(used) == hash(fresh)
    assert used.model_dump() == fresh.model_dump()


def test_evolving_takes_no_cached_property_along():
    box = Box(width=2)
    assert box.area == 4
    assert box.evolve(width=3).area == 9


def test_the_fields_are_hashed_once():
    holder = Holder(item=Counted())
    assert hash(holder) == hash(holder)
    assert holder.item.hashed == 1


def test_the_class_takes_part():
    assert Box(width=1) != Crate(width=1)
    assert hash(Box(width=1)) != hash(Crate(width=1))


def test_records_of_equal_values_are_equal_and_hash_alike():
    @record
    class Point:
        across: int
        up: int = 0

    assert Point(1) == Point(1, 0) != Point(1, 2)
    assert {Point(1), Point(across=1)} == {Point(1)}
    assert repr(Point(1, 2)).endswith("Point(across=1, up=2)")
    with pytest.raises(AttributeError):
        Point(1).down = 3
