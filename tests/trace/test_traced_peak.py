"""What is alive at the highest moment, and which modules hold it."""

from hypothesis import given, settings
from recordings import Recorder, any_recordings, two_steps

from planner.trace.analysis.live_memory import live_memory, module_shares, peak_moment
from planner.trace.recording import ModuleInfo, TraceRecording
from planner.trace.result import LiveAllocationGroup, PeakMoment

MIB = 1 << 20


def peak_of(recording: TraceRecording) -> PeakMoment:
    return peak_moment(recording, live_memory(recording.allocations))


def test_the_peak_is_at_the_expected_allocation():
    peak = peak_of(two_steps(MIB))
    assert peak.bytes == 11 * MIB + 4
    assert (peak.step, peak.phase) == (1, "backward")
    assert (peak.operator, peak.module, peak.line) == ("aten.mm", "layers.1", "net.py:20")


def test_live_allocations_are_grouped_and_sorted_by_size():
    alive = peak_of(two_steps(MIB)).alive
    assert alive[0] == LiveAllocationGroup(
        bytes=2 * MIB,
        count=2,
        category="optimizer_states",
        module="layers.0",
        operator="aten.zeros_like",
        line="",
        shape="128x128",
    )
    assert [group.bytes for group in alive] == sorted((group.bytes for group in alive), reverse=True)
    assert alive[-1].bytes == 4


def test_small_groups_beyond_200_are_merged_by_category():
    recorder = Recorder()
    for number in range(300):
        category = "parameters" if number % 2 else "buffers"
        recorder.make(1000 - number, category, shape=f"{number}")
    alive = peak_of(recorder.recording()).alive
    assert len(alive) == 202
    assert [(group.operator, group.category, group.count) for group in alive[200:]] == [
        ("other", "parameters", 50),
        ("other", "buffers", 50),
    ]
    assert sum(group.bytes for group in alive) == sum(range(701, 1001))


def test_the_memory_of_a_module_includes_its_submodules():
    recording = two_steps(MIB)
    shares = {share.path: share for share in module_shares(recording, peak_of(recording).time)}
    assert shares[""].bytes == 11 * MIB + 4
    assert shares["layers"].bytes == 10 * MIB
    assert shares["layers.0"].bytes == 4 * MIB
    assert shares["layers.1"].bytes == 6 * MIB
    assert shares["layers.1"].class_name == "Linear"
    held = {series.category: series.bytes for series in shares["layers.1"].shares}
    assert held == {
        "parameters": (MIB,),
        "optimizer_states": (2 * MIB,),
        "activations": (MIB,),
        "gradients": (MIB,),
        "temporaries": (MIB,),
    }


def test_parameters_of_children_count_for_their_parents():
    shares = module_shares(two_steps(MIB), 0)
    assert {share.path: share.parameters for share in shares} == {
        "": MIB // 2,
        "layers": MIB // 2,
        "layers.0": MIB // 4,
        "layers.1": MIB // 4,
    }


def test_a_module_without_memory_is_listed():
    recorder = Recorder()
    recorder.make(8, module="a.b")
    modules = [ModuleInfo(path=path, class_name="M", parameters=0, trainable=0) for path in ("", "a", "a.b", "c")]
    shares = module_shares(recorder.recording(modules=modules), 0)
    assert [(share.path, share.bytes) for share in shares] == [("", 8), ("a", 8), ("a.b", 8), ("c", 0)]
    assert shares[3].shares == ()


def test_a_run_without_allocations_has_an_empty_peak():
    peak = peak_of(Recorder().recording())
    assert (peak.bytes, peak.operator, peak.phase, peak.alive) == (0, "", "forward", ())


@settings(max_examples=50)
@given(any_recordings())
def test_groups_and_the_root_sum_to_the_peak(recording):
    peak = peak_of(recording)
    assert sum(group.bytes for group in peak.alive) == peak.bytes
    (root,) = module_shares(recording, peak.time)
    assert root.bytes == peak.bytes == sum(series.bytes[0] for series in root.shares)
