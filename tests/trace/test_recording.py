"""Columns and indices of a recording that contradict each other."""

import pytest
from hypothesis import given, settings
from recordings import Recorder, any_recordings, two_steps

from planner.errors import SpecError
from planner.trace.analysis.memory import facts_of
from planner.trace.recording import NEVER_FREED, Allocations, TracedFacts, TraceDifference

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
    with pytest.raises(SpecError, match=reason):
        recording.evolve(allocations=outside)


@pytest.mark.parametrize("name", ["parameters", "trainable_parameters", "flops", "convolution_flops", "seconds"])
def test_a_count_below_zero_is_refused(name):
    with pytest.raises(SpecError, match="must be at least 0, not -1"):
        two_steps().evolve(**{name: -1})


def test_a_step_may_calculate_nothing():
    still = two_steps(512).evolve(flops=0, convolution_flops=0, product_elements=0, operator_calls=0)
    assert (still.flops, still.convolution_flops) == (0, 0)
    with pytest.raises(SpecError, match="flops"):
        still.evolve(flops=-1)


MIB = 1 << 20


def difference(name: str, size: int, low: int, high: int, place: str = "") -> TraceDifference:
    return TraceDifference(
        name=name, explanation="why", source="where", bytes=size, low_bytes=low, high_bytes=high, place=place
    )


def test_differences_bound_the_peak():
    found = (difference("a", 10, 4, 12), difference("b", 0, 3, 7), difference("c", 5, 0, 4))
    facts = facts_of(two_steps().evolve(differences=found))
    assert (facts.lower_margin_bytes, facts.upper_margin_bytes) == (6 + 5, 2 + 7)


def fragmented() -> Recorder:
    """Many small blocks that are freed, and then large ones that their segments cannot serve."""
    recorder = Recorder()
    recorder.free(*[recorder.make(12 * MIB) for _ in range(20)])
    recorder.make(300 * MIB)
    return recorder


def test_a_run_may_need_less_than_it_reserves_without_a_limit():
    facts = facts_of(fragmented().recording())
    assert facts.reserved_bytes == 540 * MIB
    assert facts.allocated_bytes == 300 * MIB
    assert 300 * MIB <= facts.least_reserved_bytes <= 300 * MIB + 0.02 * 540 * MIB
    assert facts.reserved_bytes_within(400 * MIB) == 400 * MIB
    assert facts.reserved_bytes_within(100 * MIB) == facts.least_reserved_bytes
    assert facts.reserved_bytes_within(1 << 40) == facts.reserved_bytes


@pytest.mark.parametrize("changes", [{"reserved_bytes": 1}, {"least_reserved_bytes": 1}, {"phases": ()}])
def test_facts_that_contradict_themselves_are_refused(changes):
    with pytest.raises(SpecError):
        facts_of(two_steps()).evolve(**changes)


@settings(max_examples=30)
@given(any_recordings())
def test_facts_survive_json(recording):
    facts = facts_of(recording)
    assert TracedFacts.model_validate_json(facts.model_dump_json()) == facts
