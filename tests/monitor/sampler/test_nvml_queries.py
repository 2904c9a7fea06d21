"""NVML queries as data."""

from planner.monitor.readings.metrics import BY_NAME
from planner.monitor.sampler.nvml_queries import (
    FACT_QUERIES,
    FAST_FIELD_QUERIES,
    FAST_QUERIES,
    GPM_METRICS,
    HIDDEN_BY_MIG,
    SLOW_FIELD_QUERIES,
    SLOW_QUERIES,
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
