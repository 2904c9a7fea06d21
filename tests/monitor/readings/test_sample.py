"""Samples: the readings of a process."""

from math import inf

from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import CardProcess, Link, TypicalInterval, late_seconds


def test_the_readings_of_a_process_by_name():
    process = CardProcess(7, "GPU-a", "compute", Reading(1024.0), sm_fraction=Reading(0.5))
    assert process.quantities == {
        "memory_bytes": Reading(1024.0),
        "sm_fraction": Reading(0.5),
        "memory_controller_fraction": missing(Cause.NOT_YET),
        "encoder_fraction": missing(Cause.NOT_YET),
        "decoder_fraction": missing(Cause.NOT_YET),
    }


def test_the_errors_of_a_link_are_those_that_are_reported():
    assert Link(0, True, 25e9, 1, None, 2).errors == 3
    assert Link(1, False).errors == 0


def test_readings_are_late_after_two_and_a_half_intervals_but_not_within_a_second():
    assert (late_seconds(2.0), late_seconds(0.1)) == (5.0, 1.0)


def test_the_typical_interval_is_the_longer_of_the_last_two():
    interval = TypicalInterval()
    assert interval.late_seconds == inf
    for seconds in (4.0, 1.0):
        interval.note(seconds)
    assert interval.late_seconds == 10.0
    assert (interval.is_late(9.0), interval.is_late(11.0)) == (False, True)
    interval.note(1.0)
    assert (interval.late_seconds, interval.is_late(3.0)) == (2.5, True)


def test_no_pause_is_late_before_the_second_reading():
    assert not TypicalInterval().is_late(1e6)


def test_a_pause_of_just_two_and_a_half_intervals_is_not_late():
    interval = TypicalInterval()
    interval.note(4.0)
    assert (interval.is_late(10.0), interval.is_late(10.1)) == (False, True)
    interval.note(0.1)
    interval.note(0.1)
    assert (interval.is_late(1.0), interval.is_late(1.1)) == (False, True)
