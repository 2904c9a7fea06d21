"""Samples: the readings of a process."""

from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import CardProcess


def test_the_readings_of_a_process_by_name():
    process = CardProcess(7, "GPU-a", "compute", Reading(1024.0), sm_fraction=Reading(0.5))
    assert process.quantities == {
        "memory_bytes": Reading(1024.0),
        "sm_fraction": Reading(0.5),
        "memory_controller_fraction": missing(Cause.NOT_YET),
    }
