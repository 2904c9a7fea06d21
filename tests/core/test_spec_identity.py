"""Two specs are the same by their fields and class alone, however much has been read from them."""

from functools import cached_property

from planner.base import Spec


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
