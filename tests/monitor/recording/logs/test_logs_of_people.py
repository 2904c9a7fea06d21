"""Logs that people's own scripts and spreadsheets made, and those that are of processes."""

import pytest
from logs_kit import cards, samples, value

from planner.errors import RecordingError
from planner.monitor.recording.logs.header import parse_column
from planner.monitor.recording.logs.names import LogField

# As nvidia-smi tells of processes: `pmon -c 2`, and `--query-compute-apps` as CSV.
PMON = """\
# gpu         pid   type     sm    mem    enc    dec    jpg    ofa    command
# Idx           #    C/G      %      %      %      %      %      %    name
    0       1234      C     97     41      -      -      -      -    python
    0          -      -      -      -      -      -      -      -    -
"""
APPS = "timestamp, pid, process_name, used_gpu_memory [MiB]\n2026/01/03 15:36:53.507, 7, python, 900 MiB\n"
# As scripts of people name their columns: karpathy/nanoGPT pull 643 and Levos06/baikal have such ones.
BY_HAND = """\
timestamp,gpu_index,temperature_C,utilization_gpu_percent,power_W,memory_used_gb
2025-09-24T03:48:33.493Z,0, 38, 100, 387.25,10.5
2025-09-24T03:48:33.493Z,1, 60, 97, 422.5,10.5
2025-09-24T03:48:33.743Z,0, 38, 99, 388.25,10.5
2025-09-24T03:48:33.743Z,1, 60, 98, 421.5,10.5
"""
# A spreadsheet of a country that writes numbers with a comma has saved it again.
SEMICOLONS = """\
timestamp;name;utilization.gpu [%];power.draw [W]
2026/01/03 15:36:53,507;NVIDIA GeForce RTX 4090;34 %;33,09 W
2026/01/03 15:36:54,507;NVIDIA GeForce RTX 4090;35 %;33,19 W
"""


@pytest.mark.parametrize("text", [PMON, APPS])
def test_a_log_of_processes_is_told_apart_from_one_of_cards(imported, text):
    with pytest.raises(RecordingError, match="is a log of processes, not of GPUs") as refused:
        imported(text)
    assert "--query-gpu=timestamp,index" in refused.value.hint


def test_columns_that_people_name_themselves(imported):
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
    ("name", "unit", "metric", "per_one"),
    [
        ("gpu memory used", "mib", "memory_used_bytes", 2**20),
        ("vram_usage_mb", "", "memory_used_bytes", 2**20),
        ("memory_mib", "", "memory_used_bytes", 2**20),
        ("mem total", "bytes", "memory_total_bytes", 1.0),
        ("gpu_usage_percent", "", "utilization_fraction", 0.01),
        ("gpu usage", "percent", "utilization_fraction", 0.01),
        ("gpuutil", "", None, None),
        ("utilization_mem_pct", "", "memory_controller_fraction", 0.01),
        ("temperature", "°c", "temperature_celsius", 1.0),
        ("gpu_temp", "", "temperature_celsius", 1.0),
        ("power max", "", "power_limit_watts", 1.0),
        ("power_mw", "", "power_watts", 1e-3),
        ("gpu_clock_mhz", "", "sm_clock_mhz", 1.0),
        ("fan speed", "%", "fan_fraction", 0.01),
        ("memory_used_percent", "", None, None),
        ("fan", "rpm", None, None),
        ("energy_kwh", "", None, None),
        ("w", "", None, None),
        ("epoch", "", None, None),
    ],
)
def test_how_a_column_is_named(name, unit, metric, per_one):
    field = parse_column(name, unit)
    assert field == (None if metric is None else LogField(metric, per_one))


def test_cells_parted_by_semicolons_or_tabs(imported):
    found = imported(SEMICOLONS)
    assert [value(found, place, "log-0", "power_watts") for place in (0, 1)] == [33.09, 33.19]
    assert (found.seconds, cards(found)[0].name) == (1.0, "NVIDIA GeForce RTX 4090")
    tabs = imported(SEMICOLONS.replace(";", "\t"))
    assert (tabs.samples, value(tabs, 1, "log-0", "power_watts")) == (2, 33.19)
