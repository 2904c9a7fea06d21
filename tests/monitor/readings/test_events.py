"""Detection of events by comparing samples and inventories."""

from dataclasses import replace

from planner.monitor.readings.events import EventDetector, EventKind
from planner.monitor.readings.faults import Fault, FaultKind
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import CardProcess, HostProcess, Sample, Xid

A, B = "GPU-a", "GPU-b"


def sample(at, *, processes=None, xids=(), **readings):
    values = {name: value if isinstance(value, tuple) else Reading(value) for name, value in readings.items()}
    return Sample(float(at), 1000.0 + at, {A: values} if values else {}, processes=processes, xids=xids)


def told(events):
    return [(event.kind, event.what, event.began.monotonic_seconds, event.ended and event.ended[0]) for event in events]


def test_a_slowdown_is_reported_at_its_start_and_end():
    detector = EventDetector(1.0)
    assert detector.note_sample(sample(0, clock_reasons=0, utilization_fraction=1)) == ()
    (begun,) = detector.note_sample(sample(1, clock_reasons=4, utilization_fraction=1))
    assert (begun.kind, begun.what, begun.uuid, begun.ended) == (EventKind.SLOWED, "power-cap", A, None)
    assert detector.note_sample(sample(2, clock_reasons=4, utilization_fraction=1)) == ()
    over, other = detector.note_sample(sample(3, clock_reasons=0x40, utilization_fraction=1))
    assert over.key == begun.key
    assert over.ended.wall_seconds == 1003
    assert other.what == "hardware-thermal"


def test_a_power_limit_at_idle_is_no_slowdown_and_missing_readings_end_none():
    detector = EventDetector(1.0)
    assert detector.note_sample(sample(0, clock_reasons=4, utilization_fraction=0)) == ()
    assert len(detector.note_sample(sample(1, clock_reasons=4, utilization_fraction=missing(Cause.MIG)))) == 1
    assert detector.note_sample(sample(2, clock_reasons=missing(Cause.FAILED))) == ()
    assert detector.note_sample(sample(3, fan_fraction=0)) == ()
    assert told(detector.note_sample(sample(4, clock_reasons=0))) == [(EventKind.SLOWED, "power-cap", 1.0, 4.0)]


def test_spans_of_two_cards_are_kept_apart():
    detector = EventDetector(1.0)
    slow, free = {"clock_reasons": Reading(0x40)}, {"clock_reasons": Reading(0)}
    assert len(detector.note_sample(Sample(0.0, 0.0, {A: slow, B: slow}))) == 2
    (over,) = detector.note_sample(Sample(1.0, 1.0, {A: slow, B: free}))
    assert over.uuid == B


def test_late_samples_leave_a_gap():
    detector = EventDetector(1.0)
    assert detector.note_sample(sample(0, fan_fraction=0)) == ()
    assert detector.note_sample(sample(2.4, fan_fraction=0)) == ()
    assert detector.note_sample(sample(4)) == ()
    assert told(detector.note_sample(sample(9, fan_fraction=0))) == [(EventKind.GAP, "", 2.4, 9.0)]


def test_a_gap_is_detected_by_the_previous_interval():
    detector = EventDetector(1.0)
    for at in (0, 1):
        assert detector.note_sample(sample(at, fan_fraction=0)) == ()
    # The driver hung: the first sample is of the machine alone, and came so late that its interval means nothing.
    detector.interval_seconds = 10.0
    assert detector.note_sample(sample(11)) == ()
    assert told(detector.note_sample(sample(12, fan_fraction=0))) == [(EventKind.GAP, "", 1.0, 12.0)]


def test_xids_are_reported_once_and_ecc_counters_by_their_growth():
    detector = EventDetector(1.0)
    (xid,) = detector.note_sample(sample(0, xids=(Xid(A, 79),), ecc_corrected=3))
    assert (xid.kind, xid.uuid, xid.number) == (EventKind.XID, A, 79)
    (ecc,) = detector.note_sample(sample(1, ecc_corrected=5, ecc_uncorrected=missing(Cause.MIG)))
    assert (ecc.kind, ecc.what, ecc.number) == (EventKind.ECC, "ecc_corrected", 2)
    assert detector.note_sample(sample(2, ecc_corrected=5)) == ()


def _process(pid, name=None):
    host = None if name is None else HostProcess(name, "me", name, 0.0, None, 0, is_own=True)
    return CardProcess(pid, A, "compute", Reading(1), host=host)


def test_processes_of_the_first_sample_are_no_started_processes():
    detector = EventDetector(1.0)
    assert detector.note_sample(sample(0, processes=(_process(1, "a"),))) == ()
    assert detector.note_sample(sample(1)) == ()
    (started,) = detector.note_sample(sample(2, processes=(_process(1, "a"), _process(2))))
    assert (started.kind, started.number, started.what) == (EventKind.PROCESS_STARTED, 2, "")
    (ended,) = detector.note_sample(sample(3, processes=(_process(2),)))
    assert (ended.kind, ended.number, ended.what) == (EventKind.PROCESS_ENDED, 1, "a")


def test_processes_start_and_end_in_the_order_in_which_they_are_listed():
    detector = EventDetector(1.0)
    names = [f"program-{number}" for number in range(20)]
    detector.note_sample(sample(0, processes=()))
    processes = tuple(replace(_process(number, name), uuid=name) for number, name in enumerate(names))
    assert [event.number for event in detector.note_sample(sample(1, processes=processes))] == list(range(20))
    assert [event.number for event in detector.note_sample(sample(2, processes=()))] == list(range(20))


def test_processes_on_a_card_that_does_not_answer_have_not_ended():
    detector = EventDetector(1.0)
    assert detector.note_sample(sample(0, processes=(_process(1, "a"),))) == ()
    (silent,) = detector.note_inventory(Inventory("580", faults=(Fault(FaultKind.CARD_NOT_ANSWERING, 0.0, A),)))
    assert (silent.what, silent.uuid) == ("card-not-answering", A)
    assert detector.note_sample(sample(1, processes=())) == ()
    assert [event.kind for event in detector.note_inventory(Inventory("580"))] == [EventKind.FAULT]
    assert detector.note_sample(sample(2, processes=(_process(1, "a"),))) == ()
    (ended,) = detector.note_sample(sample(3, processes=()))
    assert ended.kind is EventKind.PROCESS_ENDED


def test_added_lost_and_returned_cards_are_events():
    def inventory(**states):
        return Inventory("1", devices=tuple(Device(uuid, uuid, 0, state=state) for uuid, state in states.items()))

    detector = EventDetector(1.0)
    detector.note_sample(sample(5))
    assert detector.note_inventory(inventory(a="running")) == ()
    assert [event.kind for event in detector.note_inventory(inventory(a="lost", b="running"))] == [
        EventKind.LOST,
        EventKind.ADDED,
    ]
    assert detector.note_inventory(inventory(a="lost", b="running")) == ()
    assert [event.kind for event in detector.note_inventory(inventory(a="running", b="asleep"))] == [
        EventKind.RETURNED,
        EventKind.ASLEEP,
    ]


def test_faults_before_the_first_sample_are_events_at_its_time():
    detector = EventDetector(1.0)
    assert detector.note_inventory(Inventory("", faults=(Fault(FaultKind.NOT_ANSWERING, 0.0),))) == ()
    (wrong,) = detector.note_sample(sample(5))
    assert (wrong.kind, wrong.began.monotonic_seconds) == (EventKind.FAULT, 5.0)
    assert detector.note_sample(sample(6)) == ()


def test_driver_changes_and_faults_are_events():
    detector = EventDetector(1.0)
    detector.note_sample(sample(5))
    assert detector.note_inventory(Inventory("580")) == ()
    (hangs,) = detector.note_inventory(Inventory("580", faults=(Fault(FaultKind.NOT_ANSWERING, 0.0),)))
    assert (hangs.kind, hangs.what, hangs.ended) == (EventKind.FAULT, "not-answering", None)
    detector.note_sample(sample(6))
    changed, over = detector.note_inventory(Inventory("590"))
    assert (changed.kind, changed.what) == (EventKind.DRIVER_CHANGED, "580 → 590")
    assert over.ended.monotonic_seconds == 6
    assert detector.note_inventory(Inventory("")) == ()
