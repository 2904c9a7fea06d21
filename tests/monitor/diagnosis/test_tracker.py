"""Verdicts over time, and their spans on the timeline."""

from diagnosis_kit import IDLE, UUID, a_device, a_history, a_recording

from planner.monitor.diagnosis.tracker import VerdictTimeline, VerdictTracker, span_changes
from planner.monitor.diagnosis.verdict import VerdictKind
from planner.monitor.readings.events import EventKind
from planner.monitor.readings.inventory import Inventory


def test_a_verdict_keeps_the_start_of_its_kind():
    history, tracker = a_recording("saturating"), VerdictTracker()
    first = tracker.note(history, 40.0)[UUID]
    last = tracker.note(history, 124.0)[UUID]
    assert (first.kind, last.kind) == (VerdictKind.HEALTHY, VerdictKind.HEALTHY)
    assert first.since == last.since == 0.0
    assert last.at == 124.0


def test_another_kind_replaces_a_verdict_after_two_diagnoses_in_a_row():
    working, idle = a_history(), a_history(**IDLE)
    tracker = VerdictTracker()
    looks = (working, idle, working, idle, idle, idle)
    kinds = [tracker.note(history)[UUID].kind for history in looks]
    assert kinds == [VerdictKind.HEALTHY] * 4 + [VerdictKind.IDLE] * 2


def test_an_undecided_verdict_is_replaced_at_once_and_a_lost_card_shown_at_once():
    tracker = VerdictTracker()
    lost = a_history(inventory=Inventory("580", devices=(a_device(state="lost"),)))
    looks = (a_history(seconds=10), a_history(), lost)
    kinds = [tracker.note(history, at)[UUID].kind for history, at in zip(looks, (10.0, 150.0, 151.0), strict=True)]
    assert kinds == [VerdictKind.TOO_EARLY, VerdictKind.HEALTHY, VerdictKind.LOST]


def test_a_verdict_starts_no_earlier_than_the_last_other_verdict():
    hot = a_history(seconds=200, clock_reasons=lambda time: 0x20 if time >= 150 else 0.0)
    tracker = VerdictTracker()
    kinds = {}
    for at in range(100, 200, 2):
        verdict = tracker.note(hot, float(at))[UUID]
        kinds.setdefault(verdict.kind, verdict.since)
    assert 150.0 <= kinds[VerdictKind.THERMAL] <= 160.0


def test_alternating_kinds_do_not_replace_a_verdict():
    tracker = VerdictTracker()
    hot, idle = a_history(clock_reasons=0x20), a_history(**IDLE)
    kinds = [tracker.note(history)[UUID].kind for history in (a_history(), hot, idle, hot, hot)]
    assert kinds == [VerdictKind.HEALTHY] * 4 + [VerdictKind.THERMAL]


def test_an_earlier_diagnosis_discards_later_verdicts():
    history, tracker = a_recording("saturating"), VerdictTracker()
    tracker.note(history, 124.0)
    assert tracker.note(history, 10.0)[UUID].kind is VerdictKind.TOO_EARLY


def test_a_removed_card_has_no_verdict():
    tracker = VerdictTracker()
    tracker.note(a_history())
    assert tracker.note(a_history(inventory=Inventory("580"))) == {}


def wall_of(time):
    return 1e9 + time


def told(events):
    return [
        (event.what, event.began.monotonic_seconds, event.ended and event.ended.monotonic_seconds) for event in events
    ]


def test_verdicts_become_spans_up_to_the_next_verdict():
    working, stopped = a_history(), a_history(utilization_fraction=lambda time: 0.95 if time < 100 else 0.0)
    tracker = VerdictTracker()
    first = tracker.note(working)
    begun = span_changes({}, first, wall_of)
    assert told(begun) == [("healthy", 30.0, None)]
    assert begun[0].began.wall_seconds == 1e9 + 30
    assert span_changes(first, tracker.note(working), wall_of) == ()
    tracker.note(stopped)
    after = tracker.note(stopped)
    ended = span_changes(first, after, wall_of)
    assert told(ended) == [("healthy", 30.0, 100.0), ("idle-held", 100.0, None)]
    assert ended[0].key == begun[0].key
    assert told(span_changes(after, {}, wall_of)) == [("idle-held", 100.0, 150.0)]


def test_an_earlier_diagnosis_ends_a_span_at_its_last_time():
    history, tracker = a_recording("saturating"), VerdictTracker()
    late = tracker.note(history, 124.0)
    early = tracker.note(history, 60.0)
    ended = ("healthy", late[UUID].since, 124.0)
    assert told(span_changes(late, early, wall_of)) == [ended, ("healthy", 0.0, None)]
    assert told(span_changes(late, tracker.note(history, 10.0), wall_of)) == [ended]


def test_undecided_verdicts_are_no_spans():
    early = VerdictTracker().note(a_history(seconds=5))
    assert span_changes({}, early, wall_of) == span_changes(early, {}, wall_of) == ()


def diagnosed(history):
    return [
        (event.what, event.uuid, event.ended is None)
        for event in history.events(history.start, history.end)
        if event.kind is EventKind.DIAGNOSIS
    ]


def test_a_changed_verdict_ends_one_event_and_begins_another():
    history = a_history(utilization_fraction=lambda time: 0.0 if time < 70 else 0.95)
    timeline = VerdictTimeline(history)
    for at in range(40, 150, 5):
        timeline.diagnose(history, float(at))
    assert timeline.verdicts[UUID].kind is VerdictKind.HEALTHY
    assert diagnosed(history) == [("idle-held", UUID, False), ("healthy", UUID, True)]


def test_without_a_history_verdicts_are_kept_but_no_events():
    history = a_history()
    timeline = VerdictTimeline(None)
    assert timeline.diagnose(history, 100.0) is timeline.verdicts
    assert diagnosed(history) == []
