"""Recognition of log columns by their names or by the units of their cells."""

from datetime import datetime

import pytest
from logs_kit import PLATO, cards, samples, value

from planner.errors import RecordingError

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
