"""Every metric has a name of Prometheus' kind, and values go there and back."""

import re

from planner.monitor.exposition.names import CARD_SERIES, FAMILIES, HOST_SERIES
from planner.monitor.readings.metrics import DEVICE_METRICS, FACTS, HOST_METRICS

# What Prometheus' naming asks for, and abbreviations that it does not allow.
_NAME = re.compile(r"gpu_planner_(gpu|host)_[a-z0-9_]+")
_WRONG_ENDING = re.compile(r"_(mhz|per_s|fraction|count|sum|bucket|info)$")


def test_every_metric_has_a_series_of_its_own():
    series = (*CARD_SERIES, *HOST_SERIES)
    assert {one.metric for one in series} == {*FACTS, *DEVICE_METRICS, *HOST_METRICS}
    keys = [(one.name, one.labels) for one in series]
    assert len(set(keys)) == len(keys)
    assert not {one.name for one in series} & {family.name for family in FAMILIES}
    for one in series:
        assert _NAME.fullmatch(one.name)
        assert not _WRONG_ENDING.search(one.name)
        assert one.name.endswith("_total") == (one.kind == "counter")
        assert one.unit in one.name
        assert one.about


def test_values_are_in_base_units_and_come_back():
    expected = {
        ("gpu_planner_gpu_sm_clock_hertz", ()): (2520.0, 2.52e9),
        ("gpu_planner_gpu_utilization_ratio", ()): (0.5, 0.5),
        ("gpu_planner_gpu_memory_used_bytes", ()): (2.0**30, 2.0**30),
        ("gpu_planner_gpu_energy_joules_total", ()): (3600.5, 3600.5),
        ("gpu_planner_gpu_pcie_transmit_bytes_per_second", ()): (1e9, 1e9),
        ("gpu_planner_gpu_throttled_ratio", (("reason", "power"),)): (0.25, 0.25),
        ("gpu_planner_gpu_clock_reason", (("reason", "power-cap"),)): (4.0, 1.0),
        ("gpu_planner_gpu_clock_reason", (("reason", "idle"),)): (0.0, 0.0),
        ("gpu_planner_host_cpu_ratio", ()): (0.125, 0.125),
    }
    series = {(one.name, one.labels): one for one in (*CARD_SERIES, *HOST_SERIES)}
    for key, (ours, exposed) in expected.items():
        assert series[key].to_exposed(ours) == exposed
