"""Names of log columns and their metrics."""

import pytest

from planner.monitor.recording.log_columns import parse_column
from planner.monitor.recording.log_names import LogField


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
def test_the_metric_and_the_factor_of_a_column_name(name, unit, metric, per_one):
    field = parse_column(name, unit)
    assert field == (None if metric is None else LogField(metric, per_one))
