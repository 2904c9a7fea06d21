"""Summary of a recording: phases, digest, merged differences, and the allocator's settings."""

from recordings import Recorder, training, two_steps

from planner.trace.allocator_settings import AllocatorSettings
from planner.trace.analysis.memory import facts_of, merge_differences, recording_digest
from planner.trace.recording import CategoryShare, TraceDifference

MIB = 1 << 20


def difference(name: str, size: int, low: int, high: int, place: str = "") -> TraceDifference:
    return TraceDifference(
        name=name, explanation="why", source="where", bytes=size, low_bytes=low, high_bytes=high, place=place
    )


def fragmented() -> Recorder:
    """Many small blocks that are freed, and then large ones that their segments cannot serve."""
    recorder = Recorder()
    recorder.free(*[recorder.make(12 * MIB) for _ in range(20)])
    recorder.make(300 * MIB)
    return recorder


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


def test_each_phase_names_the_allocation_at_its_peak():
    explanations = {phase.name: phase.explanation for phase in facts_of(two_steps()).phases}
    assert explanations == {
        "load": "parameters and buffers are on the GPU",
        "forward": "reached in step 2 by aten.addmm in layers.1 at net.py:20",
        "loss": "reached in step 2 by aten.mse_loss at net.py:40",
        "backward": "reached in step 2 by aten.mm in layers.1 at net.py:20",
        "step": "reached in step 1 by aten.zeros_like in layers.1",
    }


def test_generation_phases_are_counted_in_tokens():
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


def test_a_phase_without_allocations_has_the_memory_before_it():
    recorder = Recorder()
    recorder.begin("forward")
    recorder.begin("step")
    facts = facts_of(recorder.recording())
    assert [(phase.name, phase.bytes, phase.shares) for phase in facts.phases] == [("forward", 0, ()), ("step", 0, ())]
    assert facts.reserved_bytes == facts.largest_tensor_bytes == 0


def test_equal_recordings_have_equal_digests():
    assert recording_digest(two_steps()) == recording_digest(two_steps())
    assert recording_digest(two_steps()) != recording_digest(two_steps(2 * MIB))
    assert facts_of(two_steps()).digest == recording_digest(two_steps())


def test_differences_of_one_name_are_merged_with_summed_bytes():
    found = merge_differences(
        (difference("a", 1, 0, 5, "x"), difference("b", 2, 2, 2), difference("a", 10, 5, 10, "y"))
    )
    assert found == (difference("a", 11, 5, 15), difference("b", 2, 2, 2))
    same = merge_differences((difference("a", 1, 0, 5, "x"), difference("a", 1, 0, 5, "x")))
    assert same == (difference("a", 2, 0, 10, "x"),)


def test_settings_of_the_allocator_change_what_is_reserved():
    expandable = facts_of(fragmented().recording(), AllocatorSettings(expandable_segments=True))
    assert expandable.reserved_bytes < facts_of(fragmented().recording()).reserved_bytes
