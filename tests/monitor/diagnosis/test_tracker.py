"""Verdicts from look to look, and the list of what to do next."""

from diagnosis_kit import UUID, a_device, a_history, a_recording

from planner.monitor.diagnosis.tracker import VerdictTracker, span_changes
from planner.monitor.diagnosis.verdict import VerdictKind
from planner.monitor.readings.inventory import Inventory


def test_a_verdict_keeps_the_time_at_which_its_kind_was_found_first():
    history, tracker = a_recording("saturating"), VerdictTracker()
    first = tracker.note(history, 40.0)[UUID]
    last = tracker.note(history, 124.0)[UUID]
    assert (first.kind, last.kind) == (VerdictKind.HEALTHY, VerdictKind.HEALTHY)
    assert first.since == last.since == 0.0
    assert last.at == 124.0


def test_another_kind_takes_its_place_when_it_was_found_twice_on_end():
    working, idle = a_history(), a_history(utilization_fraction=0.0)
    tracker = VerdictTracker()
    looks = (working, idle, working, idle, idle, idle)
    kinds = [tracker.note(history)[UUID].kind for history in looks]
    assert kinds == [VerdictKind.HEALTHY] * 4 + [VerdictKind.IDLE] * 2


def test_what_says_nothing_yet_gives_way_at_once_and_a_lost_card_is_beyond_doubt():
    tracker = VerdictTracker()
    lost = a_history(inventory=Inventory("580", devices=(a_device(state="lost"),)))
    looks = (a_history(seconds=10), a_history(), lost)
    kinds = [tracker.note(history, at)[UUID].kind for history, at in zip(looks, (10.0, 150.0, 151.0), strict=True)]
    assert kinds == [VerdictKind.TOO_EARLY, VerdictKind.HEALTHY, VerdictKind.LOST]


def test_a_kind_begins_no_earlier_than_another_was_found_last():
    hot = a_history(seconds=200, clock_reasons=lambda time: 0x20 if time >= 150 else 0.0)
    tracker = VerdictTracker()
    kinds = {}
    for at in range(100, 200, 2):
        verdict = tracker.note(hot, float(at))[UUID]
        kinds.setdefault(verdict.kind, verdict.since)
    assert 150.0 <= kinds[VerdictKind.THERMAL] <= 160.0


def test_two_kinds_that_take_turns_do_not_count_for_each_other():
    tracker = VerdictTracker()
    hot, idle = a_history(clock_reasons=0x20), a_history(utilization_fraction=0.0)
    kinds = [tracker.note(history)[UUID].kind for history in (a_history(), hot, idle, hot, hot)]
    assert kinds == [VerdictKind.HEALTHY] * 4 + [VerdictKind.THERMAL]


def test_going_back_in_time_starts_anew():
    history, tracker = a_recording("saturating"), VerdictTracker()
    tracker.note(history, 124.0)
    assert tracker.note(history, 10.0)[UUID].kind is VerdictKind.TOO_EARLY


def test_a_card_that_is_gone_is_forgotten():
    tracker = VerdictTracker()
    tracker.note(a_history())
    assert tracker.note(a_history(inventory=Inventory("580"))) == {}


def wall_of(time):
    return 1e9 + time


def told(events):
    return [
        (event.what, event.began.monotonic_seconds, event.ended and event.ended.monotonic_seconds) for event in events
    ]


def test_verdicts_become_spans_that_end_where_the_next_begins():
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
    assert told(ended) == [("healthy", 30.0, 100.0), ("idle", 100.0, None)]
    assert ended[0].key == begun[0].key
    assert told(span_changes(after, {}, wall_of)) == [("idle", 100.0, 150.0)]


def test_going_back_ends_a_span_where_it_was_seen_last():
    history, tracker = a_recording("saturating"), VerdictTracker()
    late = tracker.note(history, 124.0)
    early = tracker.note(history, 60.0)
    ended = ("healthy", late[UUID].since, 124.0)
    assert told(span_changes(late, early, wall_of)) == [ended, ("healthy", 0.0, None)]
    assert told(span_changes(late, tracker.note(history, 10.0), wall_of)) == [ended]


def test_what_says_nothing_is_no_span():
    early = VerdictTracker().note(a_history(seconds=5))
    assert span_changes({}, early, wall_of) == span_changes(early, {}, wall_of) == ()
