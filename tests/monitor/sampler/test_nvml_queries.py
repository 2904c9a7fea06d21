"""NVML queries as data."""

import pytest

from planner.monitor.readings.metrics import BY_NAME
from planner.monitor.sampler.nvml_queries import (
    FACT_QUERIES,
    FAST_FIELD_QUERIES,
    FAST_QUERIES,
    GPM_METRICS,
    HIDDEN_BY_MIG,
    SLOW_FIELD_QUERIES,
    SLOW_QUERIES,
    thermal_field_queries,
)


def test_every_query_reads_a_known_metric():
    asked = [
        question.name
        for question in (*FAST_QUERIES, *SLOW_QUERIES, *FAST_FIELD_QUERIES, *SLOW_FIELD_QUERIES, *FACT_QUERIES)
    ]
    names = {*asked, *(name for name, _ in GPM_METRICS), *HIDDEN_BY_MIG}
    assert names <= set(BY_NAME)
    assert all(BY_NAME[question.name].cadence == "fast" for question in (*FAST_QUERIES, *FAST_FIELD_QUERIES))
    assert all(BY_NAME[question.name].cadence == "slow" for question in (*SLOW_QUERIES, *SLOW_FIELD_QUERIES))


@pytest.mark.parametrize(
    ("version", "fields"),
    [
        ("535.183.01", []),
        ("570.172.08", []),
        ("575.57.08", [251, 252]),
        ("580.65.06", [251, 252]),
        ("580.76.05", []),
        ("580.82.07", [269, 270]),
        ("590.48.01", [269, 270]),
        ("", []),
    ],
)
def test_the_time_slowed_by_heat_is_asked_by_the_numbers_of_the_drivers_own_header(version, fields):
    assert [query.field for query in thermal_field_queries(version)] == fields
