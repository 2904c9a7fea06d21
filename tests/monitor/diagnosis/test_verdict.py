"""Verdicts as JSON values, and the comparison of values with criteria."""

import json

import pytest
from diagnosis_kit import UUID, a_history

from planner.monitor.diagnosis.diagnose import diagnose
from planner.monitor.diagnosis.verdict import Criterion, ThresholdSource, verdict_object


def test_a_verdict_as_json_values():
    found = verdict_object(diagnose(a_history(clock_reasons=0x20), UUID))
    assert json.loads(json.dumps(found)) == found
    assert (found["kind"], found["severity"], found["also"][0]["kind"]) == ("thermal-throttled", "warning", "healthy")
    slowed, _lately, temperature, *_ = found["evidence"]
    assert (slowed["metric"], slowed["seen"], slowed["sign"], slowed["threshold"]) == ("slowed_by_heat", 1.0, ">", 0.05)
    assert slowed["is_heuristic"] is True
    assert set(temperature) == {"metric", "statistic", "seen"}


@pytest.mark.parametrize(("sign", "values"), [(">", [False, False, True]), (">=", [False, True, True])])
def test_a_criterion_holds_above_its_threshold(sign, values):
    criterion = Criterion("use_fraction", "median", sign, 0.7, ThresholdSource("a guide"))
    assert [criterion.holds(value) for value in (0.6, 0.7, 0.8)] == values


@pytest.mark.parametrize(("sign", "values"), [("<", [True, False, False]), ("<=", [True, True, False])])
def test_a_criterion_holds_below_its_threshold(sign, values):
    criterion = Criterion("use_fraction", "median", sign, 0.7, ThresholdSource("a guide"))
    assert [criterion.holds(value) for value in (0.6, 0.7, 0.8)] == values
