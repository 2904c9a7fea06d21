"""Single log cells: numbers, times, and reasons for missing values."""

import pytest

from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.recording.logs.cells import parse_reading, parse_unit
from planner.monitor.recording.logs.importing import (
    ODD_TIMES,
)
from planner.monitor.recording.logs.names import LogField


@pytest.mark.parametrize(
    ("cell", "seconds"),
    [
        ("2026-01-03T10:00:01.123456789+00:00", 1767434401.123456),
        ("2026-01-03T10:00:01,123456789+00:00", 1767434401.123456),
        ("1767434401.5", 1767434401.5),
        ("1767434401500", 1767434401.5),
    ],
)
def test_times_in_several_formats(imported, cell, seconds):
    found = imported(f'timestamp,power.draw\n"{cell}",1\n')
    assert found.first.wall_seconds == pytest.approx(seconds, abs=1e-5)


def test_small_numbers_are_seconds_since_the_start(imported):
    assert imported("timestamp,power.draw\n0.25,1\n0.75,2\n").seconds == 0.5


@pytest.mark.parametrize("cell", ["", "soon", "1e300", "9" * 40, "0001-01-01", "-5e9"])
def test_a_cell_without_a_valid_time_has_no_time(imported, cell):
    assert imported(f"timestamp,power.draw\n{cell},1\n").notes[0] == ODD_TIMES


@pytest.mark.parametrize(
    ("cell", "reading"),
    [
        ("33.09 W", Reading(33.09)),
        ("5000 mW", Reading(5.0)),
        ("[N/A]", missing(Cause.NOT_SUPPORTED)),
        ("[Insufficient Permissions]", missing(Cause.NO_PERMISSION)),
        ("", None),
        ("much", None),
    ],
)
def test_a_cell_is_a_number_with_a_unit_or_a_reason_for_no_value(cell, reading):
    assert parse_reading(cell, LogField("power_watts")) == reading


def test_the_unit_of_a_cell():
    assert [parse_unit(cell) for cell in ("12 MiB", "0.5", "P8")] == ["mib", "", None]
