"""The record of a measured run: percentiles, and a reason for each field that is unknown."""

import pytest

from planner.errors import SpecError
from planner.serving_runs.record import Distribution, MeasuredPercentile, serving_run

P99 = MeasuredPercentile(percent=99, value=2.0, low=1.0, high=3.0)


def test_a_percentile_is_found_by_its_number():
    found = Distribution(mean=1.0, percentiles=(P99,))
    assert (found.at(99), found.at(50)) == (P99, None)


def test_each_unknown_field_has_a_reason():
    run = serving_run("guidellm", {"completed_requests": 3, "duration_seconds": None}, {"engine": "any server"})
    assert (run.completed_requests, run.reason("completed_requests")) == (3, None)
    assert run.reason("engine") == "any server"
    assert run.reason("duration_seconds") == "a report of guidellm does not state it"


def test_a_value_that_is_not_allowed_is_told():
    with pytest.raises((SpecError, ValueError), match="completed_requests"):
        serving_run("guidellm", {"completed_requests": "many"})
