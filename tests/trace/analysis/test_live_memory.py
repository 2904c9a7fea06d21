"""Live bytes over a recording, in all points and in those that are drawn."""

import pytest
from hypothesis import given, settings
from recordings import Recorder, any_recordings, two_steps

from planner.trace.analysis.live_memory import AllocationOrigin, alive_at, allocation_origin, live_memory, phase_at
from planner.trace.analysis.trace_result import downsampled_timeline
from planner.trace.recording import CATEGORIES, TraceRecording


def level(recording: TraceRecording, time: int) -> dict[int, int]:
    """Count the live bytes of each category at `time`, the slow and plain way."""
    found: dict[int, int] = {}
    columns = recording.allocations
    for number, size in enumerate(columns.bytes):
        freed = columns.freed[number]
        if columns.made[number] <= time and (freed == -1 or freed > time):
            found[columns.category[number]] = found.get(columns.category[number], 0) + size
    return found


def test_live_memory_rises_and_falls_with_each_event():
    recorder = Recorder()
    first = recorder.make(100)
    second = recorder.make(50)
    recorder.free(first)
    recorder.make(7)
    recorder.free(second)
    course = live_memory(recorder.recording().allocations)
    assert course.times == (-1, 0, 1, 2, 3, 4)
    assert course.totals == (0, 100, 150, 50, 57, 7)
    assert course.origins == (None, 0, 1, 1, 2, 2)
    assert course.peak_index() == 2


def test_the_peak_of_an_interval_is_the_earliest_of_equal_ones():
    recorder = Recorder()
    for _ in range(2):
        recorder.free(recorder.make(10))
    course = live_memory(recorder.recording().allocations)
    assert course.peak_index() == 1
    assert course.peak_index_between(2, 4) == 3


def test_an_interval_without_events_has_the_memory_before_it():
    recorder = Recorder()
    recorder.make(10)
    course = live_memory(recorder.recording().allocations)
    assert course.totals[course.peak_index_between(5, 9)] == 10
    assert course.totals[course.peak_index_between(0, 0)] == 0


def test_a_run_without_allocations_has_no_live_memory():
    course = live_memory(Recorder().recording().allocations)
    assert (course.times, course.totals, course.peak_index()) == ((-1,), (0,), 0)


@pytest.mark.parametrize(("time", "name"), [(-1, "load"), (0, "load"), (3, "forward"), (5, "loss"), (10_000, "step")])
def test_a_time_belongs_to_the_phase_that_began_last(time, name):
    assert phase_at(two_steps().spans[:5], time).name == name


@pytest.mark.parametrize(
    ("maker", "text"),
    [
        (AllocationOrigin("aten.mm", "layers.0", "net.py:3"), "aten.mm in layers.0 at net.py:3"),
        (AllocationOrigin("aten.mm", "", "net.py:3"), "aten.mm at net.py:3"),
        (AllocationOrigin("aten.mm", "layers.0"), "aten.mm in layers.0"),
    ],
)
def test_an_origin_has_operator_module_and_line(maker, text):
    assert str(maker) == text


def test_a_missing_allocation_has_an_empty_origin():
    assert allocation_origin(two_steps(), None) == AllocationOrigin()


@settings(max_examples=50)
@given(any_recordings())
def test_live_memory_is_the_sum_of_live_allocations(recording):
    course = live_memory(recording.allocations)
    for time, total in zip(course.times, course.totals, strict=True):
        assert total == sum(level(recording, time).values())
        assert total == sum(recording.allocations.bytes[number] for number in alive_at(recording.allocations, time))


@settings(max_examples=50)
@given(any_recordings())
def test_the_categories_of_the_timeline_sum_to_live_memory(recording):
    timeline = downsampled_timeline(recording, live_memory(recording.allocations))
    for point, time in enumerate(timeline.times):
        drawn = {series.category: series.bytes[point] for series in timeline.series if series.bytes[point]}
        assert drawn == {CATEGORIES[place]: size for place, size in level(recording, time).items() if size}


def test_a_long_timeline_has_at_most_800_points_with_all_interval_peaks():
    recorder = Recorder()
    sizes = [1 + (number * 7919) % 10_007 for number in range(4000)]
    for size in sizes:
        recorder.free(recorder.make(size))
    recording = recorder.recording()
    course = live_memory(recording.allocations)
    timeline = downsampled_timeline(recording, course)
    assert len(timeline.times) == 800
    stretch = 10
    expected = [max(course.totals[start : start + stretch]) for start in range(1, len(course.times), stretch)]
    assert [sum(series.bytes[point] for series in timeline.series) for point in range(len(expected))] == expected
    assert max(expected) == max(sizes)
    assert list(timeline.times) == sorted(set(timeline.times))


def test_each_point_has_the_origin_of_the_last_allocation():
    timeline = downsampled_timeline(two_steps(), live_memory(two_steps().allocations))
    first = timeline.operators[0], timeline.modules[0], timeline.lines[0]
    assert first == ("aten.empty", "layers.0", "net.py:10")
    assert timeline.spans == two_steps().spans
