"""The registry of quantities."""

import pytest

from planner.monitor.readings.metrics import (
    BY_NAME,
    CLOCK_REASONS,
    DEVICE_METRICS,
    FACTS,
    HOST_METRICS,
    checked_reading,
    slowing_reasons,
)
from planner.monitor.readings.reading import Reading


def test_names_of_quantities_are_unique_and_end_in_their_unit():
    endings = {
        "fraction": "_fraction",
        "bytes": "_bytes",
        "bytes/s": "_bytes_per_s",
        "W": "_watts",
        "J": "_joules",
        "°C": "_celsius",
        "MHz": "_mhz",
    }
    for metrics in ((*DEVICE_METRICS, *FACTS), HOST_METRICS):
        names = [metric.name for metric in metrics]
        assert len(names) == len(set(names))
        assert all(metric.name.endswith(endings.get(metric.unit, "")) for metric in metrics)


@pytest.mark.parametrize(
    ("name", "value", "most", "implausible"),
    [
        ("utilization_fraction", 1.0, None, False),
        ("utilization_fraction", 1.01, None, True),
        ("temperature_celsius", -10, None, False),
        ("temperature_celsius", -300, None, True),
        ("memory_used_bytes", 2**40, None, False),
        ("sm_clock_mhz", 20_000.0, None, False),
        ("sm_clock_mhz", 20_000.5, None, True),
        ("memory_used_bytes", 2**40, 2**35, True),
    ],
)
def test_implausible_values_are_kept_and_marked(name, value, most, implausible):
    assert checked_reading(BY_NAME[name], value, most) == Reading(value, is_implausible=implausible)


def test_the_power_limit_of_an_idle_card_does_not_slow_it():
    assert slowing_reasons(0x4, 0.0) == ()
    assert [reason.name for reason in slowing_reasons(0x4, 0.5)] == ["power-cap"]
    assert [reason.name for reason in slowing_reasons(0x4, None)] == ["power-cap"]
    assert [reason.name for reason in slowing_reasons(0x1 | 0x40 | 0x100, 0.0)] == ["hardware-thermal"]
    assert len({reason.bit for reason in CLOCK_REASONS}) == len(CLOCK_REASONS)
