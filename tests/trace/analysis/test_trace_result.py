"""The whole answer of a trace on a card."""

import pytest
from recordings import Recorder, two_steps
from small_models import bundled

from planner.hardware.usable import UsableMemory
from planner.memory.result import MemoryResult
from planner.trace.allocator_settings import AllocatorSettings
from planner.trace.analysis.memory import facts_of, traced_memory
from planner.trace.analysis.trace_result import conclude
from planner.units import GIB, MIB

RTX_4090 = bundled().hardware.gpu("rtx-4090")


USABLE = bundled().hardware.usable_memory(RTX_4090)


def small_card(size: int) -> UsableMemory:
    return USABLE._replace(bytes=size, low_bytes=size, high_bytes=size)


def test_a_trace_result_has_the_estimators_fields_and_its_own():
    recording = two_steps(64 * MIB)
    result = conclude(recording, RTX_4090, USABLE, 2, GIB)
    memory = traced_memory(facts_of(recording), RTX_4090, USABLE, 2, GIB)
    assert {name: getattr(result, name) for name in MemoryResult.model_fields} == {
        name: getattr(memory, name) for name in MemoryResult.model_fields
    }
    assert result.request == recording.request
    assert result.environment == recording.environment
    assert (result.parameters, result.flops, result.seconds) == (recording.parameters, 1_000_000, 0.5)
    assert result.differences == recording.differences


def test_all_parts_of_a_result_describe_the_same_peak():
    result = conclude(two_steps(64 * MIB))
    assert result.peak_moment.bytes == 11 * 64 * MIB + 4
    assert result.modules[0].bytes == result.peak_moment.bytes
    drawn = [sum(values) for values in zip(*(series.bytes for series in result.timeline.series), strict=True)]
    assert max(drawn) == result.peak_moment.bytes
    assert result.timeline.times[drawn.index(max(drawn))] == result.peak_moment.time
    assert result.peak_phase == result.peak_moment.phase


def test_a_small_card_runs_out_of_memory_at_a_source_line():
    recording = two_steps(64 * MIB)
    context_and_workspaces = (426 + 2 * 8.125) * MIB
    result = conclude(recording, RTX_4090, small_card(int(context_and_workspaces) + 600 * MIB))
    out = result.reservation.out_of_memory
    assert result.fit_probability < 0.5
    assert (out.phase, out.step, out.operator, out.bytes) == ("backward", 1, "aten.mm", 64 * MIB)
    assert out.reserved_bytes + out.bytes > 600 * MIB


def test_memory_of_other_processes_is_not_available_to_the_allocator():
    recording = two_steps(64 * MIB)
    assert conclude(recording, RTX_4090, USABLE).reservation.out_of_memory is None
    assert conclude(recording, RTX_4090, USABLE, other_processes_bytes=23 * GIB).reservation.out_of_memory is not None


def test_the_allocators_settings_affect_the_result():
    recorder = Recorder()
    recorder.free(*[recorder.make(12 * MIB) for _ in range(20)])
    recorder.make(300 * MIB)
    usual = conclude(recorder.recording())
    expandable = conclude(recorder.recording(), settings=AllocatorSettings(expandable_segments=True))
    assert expandable.reservation.settings == "expandable_segments:True"
    assert expandable.total_bytes < usual.total_bytes


@pytest.mark.parametrize("gpu", [None, RTX_4090])
def test_a_card_of_unknown_memory_is_replayed_without_a_limit(gpu):
    assert conclude(two_steps(GIB), gpu).reservation.out_of_memory is None
