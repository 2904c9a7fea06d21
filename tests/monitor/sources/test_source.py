"""Readings of what a source knows, and its failures."""

from planner.monitor.readings.faults import FaultKind
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.reading import Reading
from planner.monitor.sources.source import SourceFailedError, readings_of


def test_only_what_is_known_becomes_a_reading_and_what_is_impossible_is_marked():
    values = {"power_watts": 5.0, "temperature_celsius": None, "utilization_fraction": 1.5}
    assert readings_of(values) == {"power_watts": Reading(5.0), "utilization_fraction": Reading(1.5, None, True)}


def test_a_failure_may_name_cards_that_are_there_all_the_same():
    device = Device("Apple-0", "Apple chip GPU", 0)
    assert SourceFailedError(FaultKind.HELPER_MISSING, "macmon", (device,)).devices == (device,)
    assert SourceFailedError(FaultKind.SOURCE_FAILED, "broken").devices == ()
