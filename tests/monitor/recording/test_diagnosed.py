"""How long each diagnosis of a recording lasted."""

import pytest
from recording_kit import WALL, A, B, recording, sample

from planner.monitor.diagnosis.verdict import VerdictKind
from planner.monitor.history import History
from planner.monitor.recording.diagnosed import diagnosed_history, diagnosed_times
from planner.monitor.recording.records import RecordedMark

HEAT = 0x20


def busy(at, bits):
    return {"utilization_fraction": 0.95, "clock_reasons": bits, "power_watts": 200.0, "memory_used_bytes": 1e10}


def hot_later():
    """A recording of five minutes, in which the first card is too hot from the third on."""
    return recording(*(sample(float(at), a=busy(at, HEAT if at >= 180 else 0), b=busy(at, 0)) for at in range(0, 300)))


def test_the_time_of_a_diagnosis_is_summed_over_its_cards():
    found = {each.kind: each for each in diagnosed_times(diagnosed_history(hot_later()))}
    hot = found[VerdictKind.THERMAL.value]
    assert hot.uuids == (A,)
    assert 90.0 <= hot.seconds <= 120.0
    history = diagnosed_history(hot_later())
    spans = [
        (event.ended.monotonic_seconds if event.ended else history.end) - event.began.monotonic_seconds
        for event in history.events(history.start, history.end)
        if event.what == hot.kind
    ]
    assert hot.seconds == pytest.approx(sum(spans))
    other = next(each for kind, each in found.items() if kind != hot.kind)
    assert set(other.uuids) == {A, B}
    assert other.seconds > hot.seconds


def test_loading_can_be_stopped():
    assert diagnosed_history(hot_later(), lambda: True).end is None
    stopped_once = iter([False, True])
    assert diagnosed_history(hot_later(), lambda: next(stopped_once, False)).events(0.0, 1e9) == ()


def test_an_empty_history_has_no_diagnosis():
    assert diagnosed_times(History()) == ()


def test_marks_are_part_of_the_history():
    marked = recording(sample(0.0), RecordedMark(0.5, WALL + 0.5, "here"), sample(1.0))
    assert [mark.text for mark in diagnosed_history(marked).marks] == ["here"]
