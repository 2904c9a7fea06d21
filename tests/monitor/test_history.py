"""The history: owners, clocks, events, gaps and marks."""

import pytest

from planner.monitor.history import HOST, EventLog, History, TimelineMark, WallClock
from planner.monitor.readings.events import Event, EventKind, Timestamp
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.metrics import CLOCK_REASONS
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import Sample, Xid

CARD = "GPU-1"
POWER_CAP = float(next(reason.bit for reason in CLOCK_REASONS if reason.name == "power-cap"))


def sample(time: float, xids: tuple[Xid, ...] = (), **readings: Reading) -> Sample:
    """Return a sample of one card, taken at half past something."""
    return Sample(time, time + 1000.5, {CARD: readings}, {"cpu_fraction": Reading(time / 100)}, xids=xids)


@pytest.fixture
def history() -> History:
    """A history that has seen three seconds."""
    made = History(seconds=100)
    made.note(Inventory(devices=(Device(CARD, "A GPU", 0),)))
    for time in range(3):
        made.note(sample(float(time), power_watts=Reading(100.0 + time)))
    return made


def test_each_quantity_of_each_owner_has_a_series(history: History) -> None:
    assert history.owners == (HOST, CARD)
    assert history.series(CARD, "power_watts").values.tolist() == [100.0, 101.0, 102.0]
    assert history.series(HOST, "cpu_fraction").last == 0.02
    assert len(history.series(CARD, "no such thing")) == 0
    assert history.inventory.devices[0].uuid == CARD
    assert history.latest.reading(CARD, "power_watts") == Reading(102.0)
    assert history.nbytes > 0


def test_the_history_knows_which_quantities_were_read(history: History) -> None:
    assert history.has_readings_of("power_watts", of_host=False)
    assert history.has_readings_of("cpu_fraction", of_host=True)
    assert not history.has_readings_of("power_watts", of_host=True)
    assert not History().has_readings_of("power_watts", of_host=False)


def test_monotonic_times_are_converted_to_wall_times(history: History) -> None:
    assert (history.start, history.end) == (0.0, 2.0)
    assert history.wall_of(2.0) == 1002.5
    assert (History().start, History().end, History().wall_of(5.0)) == (None, None, 5.0)


def test_missing_and_implausible_readings_leave_a_gap(history: History) -> None:
    history.note(sample(3.0, power_watts=missing(Cause.NOT_SUPPORTED), fan_fraction=missing(Cause.NOT_SUPPORTED)))
    history.note(sample(4.0, power_watts=Reading(1e9, is_implausible=True)))
    history.note(sample(5.0, power_watts=Reading(90.0)))
    power = history.series(CARD, "power_watts")
    assert power.values.tolist() == [100.0, 101.0, 102.0, 90.0]
    assert power.gaps(0, 10) == ((2.0, 5.0),)
    assert history.gaps(0, 10) == ()
    assert len(history.series(CARD, "fan_fraction")) == 0


def test_a_silent_sampler_leaves_a_gap_in_all_series(history: History) -> None:
    history.note(sample(30.0, power_watts=Reading(1.0)))
    assert history.gaps(0, 100) == ((2.0, 30.0),)
    (gap,) = history.events(0, 100)
    assert (gap.kind, gap.uuid) == (EventKind.GAP, CARD)


def test_an_older_sample_is_ignored(history: History) -> None:
    history.note(sample(1.0, power_watts=Reading(7.0), xids=(Xid(CARD, 79),)))
    assert history.latest.reading(CARD, "power_watts") == Reading(102.0)
    assert history.events(0, 10) == ()


def test_a_span_is_one_event_that_gets_an_end(history: History) -> None:
    history.note(sample(3.0, clock_reasons=Reading(POWER_CAP)))
    (slowed,) = history.events(0, 10)
    assert (slowed.what, slowed.ended) == ("power-cap", None)
    history.note(sample(4.0, clock_reasons=Reading(0.0)))
    (slowed,) = history.events(0, 10)
    assert slowed.ended == Timestamp(4.0, 1004.5)
    assert history.events(5, 10) == ()


def test_events_are_dropped_with_their_readings(history: History) -> None:
    history.note(sample(3.0, xids=(Xid(CARD, 79),)))
    assert [event.number for event in history.events(0, 10)] == [79]
    history.note(sample(4.0, clock_reasons=Reading(POWER_CAP)))
    history.note(sample(200.0))
    assert [event.kind for event in history.events(0, 300)] == [EventKind.SLOWED, EventKind.GAP]


def test_a_diagnosis_can_be_added_as_an_event(history: History) -> None:
    found = Event(EventKind.DIAGNOSIS, Timestamp(1.0, 1001.5), None, CARD, "input-bound")
    before = history.event_changes
    history.add_event(found)
    assert history.events(2, 3) == (found,)
    assert history.event_changes == before + 1


def test_marks_are_sorted_by_time(history: History) -> None:
    history.add_mark(2.0, "end")
    history.add_mark(1.0, "start")
    assert history.marks == (TimelineMark(1.0, "start"), TimelineMark(2.0, "end"))
    history.remove_mark(TimelineMark(1.0, "start"))
    history.remove_mark(TimelineMark(1.0, "start"))
    assert history.marks == (TimelineMark(2.0, "end"),)


def test_a_changed_wall_clock_holds_from_its_time_on() -> None:
    clock = WallClock()
    clock.note(0.0, 1000.0)
    clock.note(10.0, 1010.1)
    clock.note(20.0, 5000.0)
    assert [clock.wall_of(time) for time in (-5.0, 10.0, 25.0)] == [995.0, 1010.0, 5005.0]


def test_only_the_latest_events_are_kept() -> None:
    happenings = EventLog()
    for number in range(10_050):
        moment = Timestamp(float(number), 0.0)
        happenings.note(Event(EventKind.PROCESS_STARTED, moment, moment, CARD, number=number))
    assert len(happenings.between(0, 1e9)) == 10_000
    happenings.forget_before(1e9)
    assert happenings.between(0, 1e9) == ()


def test_a_reading_that_is_missing_interrupts_its_series(history: History) -> None:
    history.note(sample(3.0, power_watts=missing(Cause.FAILED)))
    history.note(sample(4.0, power_watts=Reading(104.0)))
    series = history.series(CARD, "power_watts")
    assert series.values.tolist() == [100.0, 101.0, 102.0, 104.0]
    assert series.value_at(1.5) == 101.0
    assert series.value_at(3.0) is None
