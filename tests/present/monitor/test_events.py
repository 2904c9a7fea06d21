"""Titles of events, sentences on alerts and faults, and durations as text."""

import pytest

from planner.monitor.alerts import Alert, AlertKind
from planner.monitor.readings.events import Event, EventKind, Timestamp
from planner.monitor.readings.faults import FAULTS, Fault, FaultKind
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.reading import Reading
from planner.monitor.readings.sample import CardProcess, HostProcess
from planner.present.monitor.events import (
    OTHER_XID_ADVICE,
    alert_advice,
    alert_object,
    alert_sentence,
    duration_text,
    elapsed_text,
    event_title,
    fault_views,
    told_once,
)

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
        (EventKind.FAULT, "lost", None, "no longer responds"),
        (EventKind.FAULT, "no-driver", None, FAULTS[FaultKind.NO_DRIVER].title),
        (EventKind.LOST, "GPU", None, "no longer responds"),
        (EventKind.DIAGNOSIS, "input-bound", None, "input-bound"),
        (EventKind.DIAGNOSIS, "of-another-version", None, "of another version"),
    ],
)
def test_the_title_of_each_kind_of_event(kind, what, number, title):
    assert event_title(Event(kind, NOW, NOW, "GPU-1", what, number)) == title


def test_a_lost_gpu_is_one_event():
    lost, gone = Event(EventKind.FAULT, NOW, None, "GPU-1", "lost"), Event(EventKind.LOST, NOW, NOW, "GPU-1", "T4")
    other = Event(EventKind.LOST, NOW, NOW, "GPU-2", "T4")
    assert told_once((gone, lost, other)) == (lost, other)


def test_no_kind_of_event_is_without_a_title():
    for kind in EventKind:
        what = {EventKind.FAULT: "lost", EventKind.ECC: "ecc_corrected"}.get(kind, "something")
        assert event_title(Event(kind, NOW, NOW, what=what, number=1))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0.4\u2009s"),
        (12.3, "12\u2009s"),
        (200, "3\u2009min 20\u2009s"),
        (7500, "2\u2009h 5\u2009min"),
        (7200, "2\u2009h"),
    ],
)
def test_durations_in_hours_minutes_and_seconds(seconds, text):
    assert duration_text(seconds) == text


CARD = Device("GPU-a", "NVIDIA RTX 4090", 0)


def test_alerts_are_sentences():
    host = HostProcess("python", "ada", "python train.py", 0.0, None, 1, is_own=True)
    ended = CardProcess(7, CARD.uuid, "compute", Reading(1.0), host=host)
    alerts = (
        Alert(AlertKind.TEMPERATURE, CARD, 1.0, 91.4),
        Alert(AlertKind.MEMORY, CARD, 1.0, 0.96),
        Alert(AlertKind.LOST, CARD, 1.0),
        Alert(AlertKind.IDLE, CARD, 1.0, 0.0),
        Alert(AlertKind.PROCESS_ENDED, CARD, 1.0, process=ended),
        Alert(AlertKind.PROCESS_ENDED, CARD, 1.0, process=CardProcess(8, CARD.uuid, "compute", Reading(1.0))),
        Alert(AlertKind.XID, CARD, 1.0, 79),
        Alert(AlertKind.SILENT, CARD, 1.0, fault=Fault(FaultKind.CARD_NOT_ANSWERING, 1.0, CARD.uuid)),
        Alert(AlertKind.SILENT, None, 1.0, fault=Fault(FaultKind.UNREACHABLE, 1.0)),
    )
    assert [alert_sentence(alert).replace("\u2009", " ") for alert in alerts] == [
        "GPU 0 RTX 4090 is at 91 °C",
        "GPU 0 RTX 4090 uses 96 % of its memory",
        "GPU 0 RTX 4090 is lost",
        "GPU 0 RTX 4090 is idle",
        "GPU 0 RTX 4090: process 7 (python) ended",
        "GPU 0 RTX 4090: process 8 ended",
        "GPU 0 RTX 4090: the driver reported Xid 79",
        "GPU 0 RTX 4090: the driver does not respond for this GPU",
        "All GPUs: the other machine cannot be reached",
    ]
    assert all(map(alert_advice, alerts))


def test_the_advice_on_an_xid_is_of_its_kind():
    advice = [alert_advice(Alert(AlertKind.XID, CARD, 1.0, number)) for number in (31, 43, 79, 999)]
    assert advice[0] == advice[1] != advice[2]
    assert advice[3] == OTHER_XID_ADVICE


def test_an_alert_as_json_names_machine_card_and_what_to_do():
    ended = Alert(AlertKind.PROCESS_ENDED, CARD, 1.0, process=CardProcess(8, CARD.uuid, "compute", Reading(1.0)))
    assert alert_object(ended, "gpu-box", 0.0) == {
        "kind": "process-ended",
        "machine": "gpu-box",
        "title": "gpu-box: GPU 0 RTX 4090: process 8 ended",
        "advice": "Check whether it ended well.",
        "at": "1970-01-01T00:00:00+00:00",
        "uuid": "GPU-a",
        "name": "NVIDIA RTX 4090",
        "index": 0,
        "seen": None,
        "pid": 8,
    }
    silent = alert_object(Alert(AlertKind.SILENT, None, 1.0, fault=Fault(FaultKind.STUCK, 1.0)), "", 0.0)
    assert (silent["title"], silent["uuid"], silent["pid"]) == (
        f"All GPUs: {FAULTS[FaultKind.STUCK].title}",
        None,
        None,
    )


def test_faults_are_sorted_by_severity_with_start_and_advice():
    latest = Latest()
    faults = (Fault(FaultKind.WSL, 10.0), Fault(FaultKind.NOT_ANSWERING, 20.0), Fault(FaultKind.LOST, 30.0, CARD.uuid))
    latest.note_inventory(Inventory("1", devices=(CARD,), faults=faults))
    views = fault_views(latest, 155.0)
    assert [view.severity for view in views] == ["error", "warning", "note"]
    assert views[0].title == "GPU 0 no longer responds"
    assert "(2 min 5 s)" in views[0].since
    assert views[0].advice in views[0].as_text


def test_below_the_headline_only_what_was_observed_of_a_lost_connection_is_said():
    refused = Fault(FaultKind.REFUSED, 20.0, detail="me@box: Permission denied (publickey).", login="me@box")
    latest = Latest()
    latest.note_inventory(Inventory("1", faults=(refused, Fault(FaultKind.WSL, 10.0, detail="here"))))
    below, other = fault_views(latest, 155.0, below_headline=True)
    assert (below.title, below.advice) == ("me@box: Permission denied (publickey)", "")
    assert (other,) == fault_views(latest, 155.0)[1:]


@pytest.mark.parametrize(
    ("seconds", "said"), [(8, "8 s"), (125, "2 min 5 s"), (3600, "1 h"), (12_000, "3 h 20 min"), (190_000, "2 d 4 h")]
)
def test_elapsed_times_in_their_two_largest_units(seconds, said):
    assert elapsed_text(seconds) == said
