"""Samples: the readings of a process."""

from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import CardProcess, Link


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
