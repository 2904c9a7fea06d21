"""Changes of verdicts become events of a history."""

from diagnosis_kit import UUID, a_history

from planner.monitor.diagnosis.timeline import VerdictTimeline
from planner.monitor.diagnosis.verdict import VerdictKind
from planner.monitor.readings.events import EventKind


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
    assert diagnosed(history) == [("idle", UUID, False), ("healthy", UUID, True)]


def test_without_a_history_verdicts_are_kept_but_no_events():
    history = a_history()
    timeline = VerdictTimeline(None)
    assert timeline.diagnose(history, 100.0) is timeline.verdicts
    assert diagnosed(history) == []
