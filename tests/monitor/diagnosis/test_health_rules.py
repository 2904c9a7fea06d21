"""Health rules: problems that matter under any workload."""

import pytest
from diagnosis_kit import UUID, a_history

from planner.monitor.diagnosis.diagnose import diagnose
from planner.monitor.diagnosis.verdict import VerdictKind
from planner.units import GIB


def test_a_thermal_slowdown_that_has_ended_is_no_problem():
    heat = {"clock_reasons": lambda time: 0x20 if 60 <= time < 100 else 0}
    assert diagnose(a_history(**heat), UUID, 100.0).kind is VerdictKind.THERMAL
    assert diagnose(a_history(**heat), UUID, 126.0).kind is VerdictKind.THERMAL
    assert diagnose(a_history(**heat), UUID, 131.0).kind is VerdictKind.HEALTHY


@pytest.mark.parametrize(("fan", "title"), [(0.3, ": the fans run slowly"), (0.9, ""), (None, "")])
def test_heat_with_slow_fans_names_the_fans_first(fan, title):
    verdict = diagnose(a_history(clock_reasons=0x20, fan_fraction=fan), UUID)
    assert verdict.title == f"slowed because of heat{title}"
    assert ("fan speed" in verdict.advice[0]) is (title != "")


def test_full_memory_is_reported_while_the_card_waits():
    history = a_history(
        utilization_fraction=lambda time: 0.0 if time > 140 else 0.95,
        memory_free_bytes=lambda time: 2e8 if time > 140 else 9e9,
    )
    assert diagnose(history, UUID).kind is VerdictKind.NEAR_FULL


def test_health_problems_come_first_and_others_are_listed_unless_the_slow_down_explains_them():
    history = a_history(clock_reasons=0x20, memory_used_bytes=23.5 * GIB, power_watts=330.0)
    verdict = diagnose(history, UUID)
    assert verdict.kind is VerdictKind.THERMAL
    assert [also.kind for also in verdict.also] == [VerdictKind.NEAR_FULL]
