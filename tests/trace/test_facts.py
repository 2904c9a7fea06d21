"""The summary that travels in a plan."""

import pytest
from hypothesis import given, settings
from pydantic import ValidationError
from recordings import Recorder, any_recordings, training, two_steps

from planner.trace.allocator.replay import minimum_capacity_bytes, replay
from planner.trace.allocator.settings import AllocatorSettings
from planner.trace.analysis.live_memory import live_memory
from planner.trace.analysis.summary import facts_of, merge_differences, recording_digest
from planner.trace.facts import CategoryShare, Difference, TracedFacts

MIB = 1 << 20


def test_each_phase_is_at_its_highest_moment():
    facts = facts_of(two_steps(MIB))
    assert [(phase.name, phase.bytes) for phase in facts.phases] == [
        ("load", 3 * MIB),
        ("forward", 9 * MIB),
        ("loss", 9 * MIB + 4),
        ("backward", 11 * MIB + 4),
        ("step", 9 * MIB),
    ]
    assert facts.peak.name == "backward"
    assert facts.allocated_bytes == 11 * MIB + 4
    assert facts.largest_tensor_bytes == MIB


def test_shares_are_by_category_with_their_count():
    assert facts_of(two_steps(MIB)).peak.shares == (
        CategoryShare(category="parameters", bytes=2 * MIB, count=2),
        CategoryShare(category="inputs", bytes=MIB, count=1),
        CategoryShare(category="gradients", bytes=MIB, count=1),
        CategoryShare(category="optimizer_states", bytes=4 * MIB, count=4),
        CategoryShare(category="activations", bytes=2 * MIB, count=2),
        CategoryShare(category="temporaries", bytes=MIB + 4, count=2),
    )


def test_phases_say_what_reached_them():
    explanations = {phase.name: phase.explanation for phase in facts_of(two_steps()).phases}
    assert explanations == {
        "load": "parameters and buffers are on the card",
        "forward": "reached in step 2 by aten.addmm in layers.1 at net.py:20",
        "loss": "reached in step 2 by aten.mse_loss at net.py:40",
        "backward": "reached in step 2 by aten.mm in layers.1 at net.py:20",
        "step": "reached in step 1 by aten.zeros_like in layers.1",
    }


def test_answers_are_counted_in_tokens():
    recorder = Recorder()
    recorder.begin("prefill")
    recorder.make(10, "activations", "aten.mm")
    recorder.begin("decode", 7)
    recorder.make(1, "kv_cache", "aten.cat")
    phases = facts_of(recorder.recording(training(task="inference"))).phases
    assert [phase.explanation for phase in phases] == [
        "reached by aten.mm at net.py:1",
        "reached at token 8 by aten.cat at net.py:1",
    ]


def test_a_phase_without_any_allocation_has_what_was_there():
    recorder = Recorder()
    recorder.begin("forward")
    recorder.begin("step")
    facts = facts_of(recorder.recording())
    assert [(phase.name, phase.bytes, phase.shares) for phase in facts.phases] == [("forward", 0, ()), ("step", 0, ())]
    assert facts.reserved_bytes == facts.largest_tensor_bytes == 0


def test_the_same_recording_has_the_same_digest_and_another_has_another():
    assert recording_digest(two_steps()) == recording_digest(two_steps())
    assert recording_digest(two_steps()) != recording_digest(two_steps(2 * MIB))
    assert facts_of(two_steps()).digest == recording_digest(two_steps())


def difference(name: str, size: int, low: int, high: int, place: str = "") -> Difference:
    return Difference(
        name=name, explanation="why", source="where", bytes=size, low_bytes=low, high_bytes=high, place=place
    )


def test_differences_of_one_name_are_one_with_their_bytes_summed():
    found = merge_differences(
        (difference("a", 1, 0, 5, "x"), difference("b", 2, 2, 2), difference("a", 10, 5, 10, "y"))
    )
    assert found == (difference("a", 11, 5, 15), difference("b", 2, 2, 2))
    same = merge_differences((difference("a", 1, 0, 5, "x"), difference("a", 1, 0, 5, "x")))
    assert same == (difference("a", 2, 0, 10, "x"),)


def test_differences_say_how_much_more_or_less_it_may_be():
    found = (difference("a", 10, 4, 12), difference("b", 0, 3, 7), difference("c", 5, 0, 4))
    facts = facts_of(two_steps().evolve(differences=found))
    assert (facts.lower_margin_bytes, facts.upper_margin_bytes) == (6 + 5, 2 + 7)


def fragmented() -> Recorder:
    """Many small blocks that are freed, and then large ones that their segments cannot serve."""
    recorder = Recorder()
    recorder.free(*[recorder.make(12 * MIB) for _ in range(20)])
    recorder.make(300 * MIB)
    return recorder


def test_a_run_gets_through_with_less_than_it_reserves_where_it_can():
    facts = facts_of(fragmented().recording())
    assert facts.reserved_bytes == 540 * MIB
    assert facts.allocated_bytes == 300 * MIB
    assert 300 * MIB <= facts.least_reserved_bytes <= 300 * MIB + 0.02 * 540 * MIB
    assert facts.reserved_bytes_within(400 * MIB) == 400 * MIB
    assert facts.reserved_bytes_within(100 * MIB) == facts.least_reserved_bytes
    assert facts.reserved_bytes_within(1 << 40) == facts.reserved_bytes


@settings(max_examples=50)
@given(any_recordings())
def test_the_least_capacity_suffices_and_two_percent_less_is_too_little(recording):
    defaults = AllocatorSettings()
    course = live_memory(recording.allocations)
    allocated = course.totals[course.peak_index()]
    reserved = replay(recording.allocations, defaults).reserved_bytes
    least = minimum_capacity_bytes(recording.allocations, defaults, allocated, reserved)
    assert allocated <= least <= reserved
    assert replay(recording.allocations, defaults, least).out_of_memory is None
    below = int(least - 0.02 * reserved) - 1
    if below >= allocated:
        assert replay(recording.allocations, defaults, below).out_of_memory is not None


def test_settings_of_the_allocator_change_what_is_reserved():
    expandable = facts_of(fragmented().recording(), AllocatorSettings(expandable_segments=True))
    assert expandable.reserved_bytes < facts_of(fragmented().recording()).reserved_bytes


@pytest.mark.parametrize("changes", [{"reserved_bytes": 1}, {"least_reserved_bytes": 1}, {"phases": ()}])
def test_facts_that_contradict_themselves_are_refused(changes):
    with pytest.raises(ValidationError):
        facts_of(two_steps()).evolve(**changes)


@settings(max_examples=30)
@given(any_recordings())
def test_facts_survive_json(recording):
    facts = facts_of(recording)
    assert TracedFacts.model_validate_json(facts.model_dump_json()) == facts
