"""Diagnosis rules: when a rule holds, and the evidence that it gives."""

import pytest
from diagnosis_kit import a_device

from planner.monitor.diagnosis.card_window import CardWindow
from planner.monitor.diagnosis.rule import MOSTLY_USED, SWINGS, DiagnosisRule, shown_evidence
from planner.monitor.diagnosis.time_series import TimeSeries
from planner.monitor.diagnosis.verdict import Evidence, VerdictKind


def window(**quantities):
    return CardWindow(a_device(), {name: TimeSeries((0.0, 1.0), values) for name, values in quantities.items()}.get)


def rule(*conditions):
    shown = (("power_watts", "last"), ("fan_fraction", "last"))
    return DiagnosisRule(VerdictKind.HEALTHY, "good", "used", "It is used.", conditions, shown=shown)


def test_a_rule_that_holds_has_evidence_for_its_criteria_and_known_quantities():
    evidence = rule(MOSTLY_USED).evidence(window(utilization_fraction=(0.8, 0.9), power_watts=(200.0, 210.0)))
    assert [(item.metric, item.statistic, item.condition) for item in evidence] == [
        ("use_fraction", "median", MOSTLY_USED),
        ("power_watts", "last", None),
    ]
    assert evidence[0].seen == pytest.approx(0.85)


def test_a_rule_does_not_hold_if_one_criterion_fails_or_its_quantity_is_unknown():
    assert rule(MOSTLY_USED, SWINGS).evidence(window(utilization_fraction=(0.8, 0.9))) is None
    assert rule(MOSTLY_USED).evidence(window(power_watts=(200.0, 210.0))) is None


def test_displayed_evidence_omits_unknown_quantities():
    shown = (("power_watts", "last"), ("temperature_celsius", "last"))
    assert shown_evidence(window(power_watts=(200.0, 210.0)), shown) == (Evidence("power_watts", "last", 210.0),)
