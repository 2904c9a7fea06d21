"""Recognition of log columns by their names or by the units of their cells."""

from datetime import datetime

import pytest
from logs_kit import PLATO, cards, samples, value

from planner.monitor.recording.logs.importing import (
    NO_HEADER,
)


def test_a_log_without_a_header_is_read_by_its_units(imported):
    found = imported(PLATO)
    assert found.notes == (NO_HEADER,)
    assert found.seconds == pytest.approx(191.133)
    assert value(found, 4, "log-0", "utilization_fraction") == 0.44
    assert value(found, 4, "log-0", "memory_controller_fraction") == pytest.approx(0.47)
    assert value(found, 3, "log-0", "memory_used_bytes") == 20137 * 2**20
    assert value(found, 3, "log-0", "memory_free_bytes") == 11 * 2**20
    assert value(found, 1, "log-0", "temperature_celsius") == 30
    assert value(found, 1, "log-0", "power_watts") == 31.73
    assert found.first.wall_seconds == datetime(2026, 4, 25, 16, 20, 23, 686000).timestamp()


def test_numbers_without_units_have_the_unit_of_the_header(imported):
    found = imported("memory.used [MiB], power.draw [W], util\n100, 50.5, 20\n")
    assert value(found, 0, "log-0", "memory_used_bytes") == 100 * 2**20
    assert value(found, 0, "log-0", "utilization_fraction") == pytest.approx(0.2)
    assert imported("power.draw [mW], pstate\n5000, P0\n").samples == 1


def test_columns_are_recognized_by_their_units(imported):
    line = "GPU-0a, 00000000:01:00.0, NVIDIA X, 0, P8, 5 %, 6 %, 7 %, 10 MiB, 20 MiB, 50, 30 W, 60 W, 1500 MHz"
    found = imported(f"{line}\n{line.replace('10 MiB', '15 MiB')}\n")
    (card,) = cards(found)
    assert (card.uuid, card.name, card.pci_bus_id) == ("GPU-0a", "NVIDIA X", "00000000:01:00.0")
    assert card.fact("memory_total_bytes") == 20 * 2**20, "what stays the same is what there is"
    assert value(found, 0, "GPU-0a", "power_limit_watts") == 60
    assert value(found, 0, "GPU-0a", "performance_state") == 8
    assert value(imported("5 %, 1 MiB\n"), 0, "log-0", "memory_used_bytes") == 2**20
    three = imported("5 %, 1 MiB, 2 MiB, 3 MiB\n")
    assert "memory_used_bytes" not in samples(three)[0].devices["log-0"], "of three, nobody knows which is which"


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
