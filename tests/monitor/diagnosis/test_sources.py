"""Sources of thresholds: every rule has one, and unpublished thresholds are marked."""

from diagnosis_kit import IDLE, UUID, a_history

from planner.monitor.diagnosis.advice import CHECKPOINTING
from planner.monitor.diagnosis.card_window import (
    DERIVED_QUANTITIES,
    HOST_PREFIX,
)
from planner.monitor.diagnosis.checklist import CHECKLIST
from planner.monitor.diagnosis.diagnose import diagnose
from planner.monitor.diagnosis.rules import RULES
from planner.monitor.diagnosis.time_series import STATISTICS
from planner.monitor.diagnosis.verdict import VerdictKind
from planner.monitor.readings.metrics import BY_NAME, HOST_BY_NAME


def test_every_criterion_has_a_known_quantity_and_a_source():
    for rule in (*RULES, *CHECKLIST):
        for condition in rule.conditions:
            name = condition.metric
            known = HOST_BY_NAME if name.startswith(HOST_PREFIX) else BY_NAME
            assert name in DERIVED_QUANTITIES or name.removeprefix(HOST_PREFIX) in known
            assert condition.statistic in STATISTICS
            assert len(condition.source.text) > 10
    for rule in RULES:
        assert rule.advice or rule.severity in ("good", "note")
        assert all(sentence.endswith((".", ")")) for sentence in (*rule.advice, rule.sentence))
    assert CHECKPOINTING in next(rule.advice for rule in RULES if rule.kind is VerdictKind.NEAR_FULL)


def test_verdicts_on_unpublished_thresholds_are_heuristics():
    assert not diagnose(a_history(**IDLE), UUID).is_heuristic
    assert diagnose(a_history(), UUID).is_heuristic
    assert diagnose(a_history(), UUID).evidence[-1].source is None
