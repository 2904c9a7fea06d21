"""Recognition of log columns by their names or by the units of their cells."""

from datetime import datetime

import pytest
from logs_kit import PLATO, cards, samples, value

from planner.errors import RecordingError
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.recording.log_columns import parse_reading, parse_unit
from planner.monitor.recording.log_import import (
    ODD_TIMES,
)
from planner.monitor.recording.log_names import LogField

PLATO_COLUMNS = "timestamp,utilization.gpu,utilization.memory,memory.used,memory.free,temperature.gpu,power.draw"


def test_a_log_without_a_header_is_refused_until_its_columns_are_named(imported):
    with pytest.raises(RecordingError, match="has no header line") as refused:
        imported(PLATO)
    assert "7 columns: 2026/04/25 16:20:23.686, 0 %, 0 %, 1949 MiB" in refused.value.hint
    assert "--columns timestamp,utilization.gpu,… --record gpu_log.gpurec" in refused.value.hint
    found = imported(PLATO, columns=PLATO_COLUMNS)
    assert found.notes == ()
    assert found.seconds == pytest.approx(191.133)
    assert value(found, 4, "log-0", "utilization_fraction") == 0.44
    assert value(found, 4, "log-0", "memory_controller_fraction") == pytest.approx(0.47)
    assert value(found, 3, "log-0", "memory_used_bytes") == 20137 * 2**20
    assert value(found, 3, "log-0", "memory_free_bytes") == 11 * 2**20
    assert value(found, 1, "log-0", "temperature_celsius") == 30
    assert value(found, 1, "log-0", "power_watts") == 31.73
    assert found.first.wall_seconds == datetime(2026, 4, 25, 16, 20, 23, 686000).timestamp()


def test_named_columns_decide_what_units_cannot_tell(imported):
    # Memory first in total, then in use: by their order, the units would have told the opposite.
    line = "NVIDIA X, 81920 MiB, 40960 MiB, 30 %, 0 %\n"
    found = imported(line, columns="name,memory.total,memory.used,fan.speed,utilization.gpu")
    assert value(found, 0, "log-0", "memory_used_bytes") == 40960 * 2**20
    assert value(found, 0, "log-0", "utilization_fraction") == 0
    assert cards(found)[0].fact("memory_total_bytes") == 81920 * 2**20
    bare = imported("0, 55, 200.5\n", columns="index,utilization.gpu,power.draw")
    assert value(bare, 0, "log-0", "utilization_fraction") == pytest.approx(0.55)


def test_named_columns_must_be_known_and_as_many_as_in_the_log(imported):
    with pytest.raises(RecordingError, match="none of which is known"):
        imported("0, 55\n", columns="one,two")
    with pytest.raises(RecordingError, match=": not a supported GPU log"):
        imported("0, 55\n", columns="index,utilization.gpu,power.draw")


def test_a_header_in_the_log_wins_over_named_columns(imported):
    found = imported("index, power.draw [W]\n0, 100\n", columns="index,utilization.gpu")
    assert value(found, 0, "log-0", "power_watts") == 100


def test_numbers_without_units_have_the_unit_of_the_header(imported):
    found = imported("memory.used [MiB], power.draw [W], util\n100, 50.5, 20\n")
    assert value(found, 0, "log-0", "memory_used_bytes") == 100 * 2**20
    assert value(found, 0, "log-0", "utilization_fraction") == pytest.approx(0.2)
    assert imported("power.draw [mW], pstate\n5000, P0\n").samples == 1


# As scripts of people name their columns: karpathy/nanoGPT pull 643 and Levos06/baikal have such ones.
BY_HAND = """\
timestamp,gpu_index,temperature_C,utilization_gpu_percent,power_W,memory_used_gb
2025-09-24T03:48:33.493Z,0, 38, 100, 387.25,10.5
2025-09-24T03:48:33.493Z,1, 60, 97, 422.5,10.5
2025-09-24T03:48:33.743Z,0, 38, 99, 388.25,10.5
2025-09-24T03:48:33.743Z,1, 60, 98, 421.5,10.5
"""


def test_column_names_of_scripts_are_recognized(imported):
    found = imported(BY_HAND)
    assert (found.samples, found.seconds, found.notes) == (2, 0.25, ())
    first = {name: reading.value for name, reading in samples(found)[0].devices["log-0"].items()}
    assert first == {
        "temperature_celsius": 38,
        "utilization_fraction": 1.0,
        "power_watts": 387.25,
        "memory_used_bytes": 10.5 * 2**30,
    }


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
