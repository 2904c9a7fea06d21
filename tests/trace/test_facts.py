"""The summary that travels in a plan."""

import pytest
from hypothesis import given, settings
from pydantic import ValidationError
from recordings import Recorder, any_recordings, two_steps

from planner.trace.analysis.summary import facts_of
from planner.trace.facts import TracedFacts, TraceDifference

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
    with pytest.raises(ValidationError):
        facts_of(two_steps()).evolve(**changes)


@settings(max_examples=30)
@given(any_recordings())
def test_facts_survive_json(recording):
    facts = facts_of(recording)
    assert TracedFacts.model_validate_json(facts.model_dump_json()) == facts
