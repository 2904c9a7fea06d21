"""What happened, in words."""

import pytest

from planner.monitor.readings.events import Event, EventKind, Timestamp
from planner.monitor.readings.faults import FAULTS, FaultKind
from planner.present.monitor.events import duration_text, event_title

NOW = Timestamp(0.0, 0.0)


@pytest.mark.parametrize(
    ("kind", "what", "number", "title"),
    [
        (EventKind.XID, "", 79, "Xid 79"),
        (EventKind.SLOWED, "power-cap", None, "power limit"),
        (EventKind.SLOWED, "unheard of", None, "unheard of"),
        (EventKind.ECC, "ecc_corrected", 3, "corrected memory errors: 3 more"),
        (EventKind.PROCESS_STARTED, "python", 12, "process 12 (python) started"),
        (EventKind.PROCESS_ENDED, "", 12, "process 12 ended"),
        (EventKind.DRIVER_CHANGED, "535 → 550", None, "driver 535 → 550"),
        (EventKind.FAULT, "lost", None, FAULTS[FaultKind.LOST].title),
        (EventKind.LOST, "Card", None, "no longer responds"),
        (EventKind.DIAGNOSIS, "input-bound", None, "waiting for data"),
        (EventKind.DIAGNOSIS, "of-another-version", None, "of another version"),
    ],
)
def test_every_kind_has_words(kind, what, number, title):
    assert event_title(Event(kind, NOW, NOW, "GPU-1", what, number)) == title


def test_no_kind_is_without_words():
    for kind in EventKind:
        what = {EventKind.FAULT: "lost", EventKind.ECC: "ecc_corrected"}.get(kind, "something")
        assert event_title(Event(kind, NOW, NOW, what=what, number=1))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0.4\u2009s"), (12.3, "12\u2009s"), (200, "3\u2009min 20\u2009s"), (7500, "2\u2009h 5\u2009min")],
)
def test_spans_are_told_as_people_do(seconds, text):
    assert duration_text(seconds) == text
