"""Columns and indices of a recording that contradict each other."""

import pytest
from pydantic import ValidationError
from recordings import two_steps

from planner.errors import SpecError
from planner.trace.recording import NEVER_FREED, Allocations

ONE = {"bytes": (512,), "made": (0,), "freed": (1,), "category": (0,), "operator": (0,), "module": (0,)}
"""One allocation of 512 bytes, made by the first event and freed by the second."""


def allocations(**changes: tuple[int, ...]) -> Allocations:
    return Allocations(**{**ONE, "line": (0,), "shape": (0,), **changes})


def test_an_allocation_may_live_to_the_end_or_be_freed_later():
    assert allocations().freed == (1,)
    assert allocations(freed=(NEVER_FREED,)).freed == (-1,)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"bytes": (512, 512)}, "the columns have different lengths"),
        ({"bytes": (-1,)}, "bytes and times cannot be negative"),
        ({"made": (-1,)}, "bytes and times cannot be negative"),
        ({"freed": (0,)}, "an allocation is freed before it is allocated"),
    ],
)
def test_columns_that_contradict_each_other_are_refused(changes, reason):
    with pytest.raises(SpecError, match=reason):
        allocations(**changes)


@pytest.mark.parametrize(
    ("column", "index", "reason"),
    [
        ("category", 10, "the category of an allocation is not in the list of 10 names"),
        ("line", -1, "the line of an allocation is not in the list of"),
    ],
)
def test_an_index_without_a_name_is_refused(column, index, reason):
    recording = two_steps()
    outside = recording.allocations.evolve(**{column: (index,) * len(recording.allocations.bytes)})
    with pytest.raises(ValidationError, match=reason):
        recording.evolve(allocations=outside)


@pytest.mark.parametrize("name", ["parameters", "trainable_parameters", "flops", "convolution_flops", "seconds"])
def test_a_count_below_zero_is_refused(name):
    with pytest.raises(ValidationError, match="greater than or equal to 0"):
        two_steps().evolve(**{name: -1})


def test_a_step_may_calculate_nothing():
    still = two_steps(512).evolve(flops=0, convolution_flops=0, product_elements=0, operator_calls=0)
    assert (still.flops, still.convolution_flops) == (0, 0)
    with pytest.raises(ValidationError, match="flops"):
        still.evolve(flops=-1)
