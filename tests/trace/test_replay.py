"""Replays of runs through the caching allocator."""

import pytest
from hypothesis import given, settings
from recordings import Recorder, any_recordings, two_steps

from planner.trace.allocator_settings import AllocatorSettings
from planner.trace.analysis.live_memory import live_memory
from planner.trace.analysis.trace_result import replay_reservation
from planner.trace.recording import Allocations
from planner.trace.replay import AllocatorReplay, FailedAllocation, minimum_capacity_bytes, replay

MIB = 1 << 20


EXPANDABLE = AllocatorSettings(expandable_segments=True)


@pytest.fixture
def run():
    """8 and 9 MiB share a segment of 20; 30 have their own; the 8 and 9 are freed and 1 byte comes last."""
    recorder = Recorder()
    recorder.begin("forward", step=1)
    first, second = recorder.make(8 * MIB), recorder.make(9 * MIB)
    recorder.make(30 * MIB, operator="aten.mm", module="layers.1", line="net.py:7")
    recorder.free(first, second)
    recorder.make(0)
    recorder.make(1)
    return recorder


def test_a_replay_has_both_peaks_and_the_state_at_them(run):
    assert replay(run.recording().allocations) == AllocatorReplay(
        reserved_bytes=52 * MIB,
        time=6,
        allocated_bytes=30 * MIB + 512,
        largest_free_block_bytes=20 * MIB,
        segments=3,
        peak_allocated_bytes=47 * MIB,
        peak_allocated_time=2,
        out_of_memory=None,
    )


def test_fragmentation_is_the_share_that_is_not_allocated(run):
    assert replay(run.recording().allocations).fragmentation_fraction == (22 * MIB - 512) / (52 * MIB)


def test_expandable_segments_have_figures_of_their_own(run):
    replayed = replay(run.recording().allocations, EXPANDABLE)
    # 8 + 9 + 30 = 47 in pages of 20 are 60; the byte takes a page of 2.
    assert (replayed.reserved_bytes, replayed.segments) == (62 * MIB, 2)


def test_the_failed_allocation_is_reported(run):
    replayed = replay(run.recording().allocations, capacity_bytes=49 * MIB)
    assert replayed.out_of_memory == FailedAllocation(2, 2, 30 * MIB, allocated_bytes=17 * MIB, reserved_bytes=20 * MIB)
    assert (replayed.reserved_bytes, replayed.peak_allocated_bytes) == (20 * MIB, 17 * MIB)


def test_an_allocation_that_fits_after_emptying_the_cache_succeeds(run):
    replayed = replay(run.recording().allocations, capacity_bytes=50 * MIB)
    assert replayed.out_of_memory is None
    assert (replayed.reserved_bytes, replayed.allocated_bytes, replayed.time) == (50 * MIB, 47 * MIB, 2)


def test_a_run_without_allocations_reserves_nothing():
    nothing = Allocations(
        bytes=(0,), made=(0,), freed=(1,), category=(0,), operator=(0,), module=(0,), line=(0,), shape=(0,)
    )
    replayed = replay(nothing)
    assert replayed == AllocatorReplay(0, None, 0, 0, 0, 0, None, None)
    assert replayed.fragmentation_fraction == 0


def test_a_reservation_names_the_line_that_fails(run):
    found = replay_reservation(run.recording(), AllocatorSettings(max_split_size_bytes=64 * MIB), 49 * MIB)
    assert found.settings == "max_split_size_mb:64"
    assert found.reserved_bytes == 20 * MIB
    failed = found.out_of_memory
    assert (failed.time, failed.step, failed.phase, failed.bytes) == (2, 1, "forward", 30 * MIB)
    assert (failed.allocated_bytes, failed.reserved_bytes) == (17 * MIB, 20 * MIB)
    assert (failed.operator, failed.module, failed.line) == ("aten.mm", "layers.1", "net.py:7")


def test_a_reservation_of_a_run_that_fits():
    recording = two_steps()
    found, replayed = replay_reservation(recording), replay(recording.allocations)
    assert (found.settings, found.out_of_memory) == ("", None)
    assert (found.reserved_bytes, found.allocated_bytes) == (replayed.reserved_bytes, replayed.allocated_bytes)
    assert (found.segments, found.largest_free_block_bytes) == (replayed.segments, replayed.largest_free_block_bytes)
    assert found.fragmentation_fraction == replayed.fragmentation_fraction


@settings(max_examples=50)
@given(any_recordings())
def test_the_minimum_capacity_suffices_and_two_percent_less_does_not(recording):
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
