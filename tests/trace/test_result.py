"""The result of a trace as a value."""

from hypothesis import given, settings
from recordings import any_recordings
from small_models import bundled

from planner.trace.analysis.trace_result import conclude
from planner.trace.result import TraceResult

RTX_4090 = bundled().hardware.gpu("rtx-4090")


USABLE = bundled().hardware.usable_memory(RTX_4090)


@settings(max_examples=30)
@given(any_recordings())
def test_results_survive_json_and_agree_with_the_replay(recording):
    result = conclude(recording, RTX_4090, USABLE)
    assert TraceResult.model_validate_json(result.model_dump_json()) == result
    assert result.reservation.out_of_memory is None
    assert result.reservation.reserved_bytes >= result.peak_moment.bytes
    assert result.total_bytes >= result.reservation.reserved_bytes
