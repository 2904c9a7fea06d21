"""NVML queries as data."""

from planner.monitor.readings.metrics import BY_NAME
from planner.monitor.sampler.nvml_queries import FACTS as FACT_QUESTIONS
from planner.monitor.sampler.nvml_queries import FAST, FAST_FIELDS, GPM, HIDDEN_BY_MIG, SLOW, SLOW_FIELDS


def test_everything_that_is_asked_for_is_a_known_quantity():
    asked = [question.name for question in (*FAST, *SLOW, *FAST_FIELDS, *SLOW_FIELDS, *FACT_QUESTIONS)]
    names = {*asked, *(name for name, _ in GPM), *HIDDEN_BY_MIG}
    assert names <= set(BY_NAME)
    assert all(BY_NAME[question.name].cadence == "fast" for question in (*FAST, *FAST_FIELDS))
    assert all(BY_NAME[question.name].cadence == "slow" for question in (*SLOW, *SLOW_FIELDS))
