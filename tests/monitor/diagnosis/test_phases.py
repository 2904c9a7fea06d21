"""Since when a card does what it does, by shapes that real logs have shown."""

import pytest
from diagnosis_kit import UUID, a_history

from planner.monitor.diagnosis.diagnose import diagnose
from planner.monitor.diagnosis.time_series import TimeSeries, WorkPhase, current_phase
from planner.monitor.diagnosis.verdict import VerdictKind


def use(*parts):
    """Return a use that is read once a second: parts of so many seconds at so much."""
    values = tuple(value for seconds, value in parts for _ in range(seconds))
    return TimeSeries(tuple(map(float, range(len(values)))), values)


@pytest.mark.parametrize(
    ("parts", "phase"),
    [
        ([(120, 0.9)], WorkPhase(0.0)),
        ([(120, 0.0)], WorkPhase(0.0)),
        ([(40, 0.0), (80, 0.9)], WorkPhase(40.0)),
        # It has stopped: for long, or just now.
        ([(80, 0.9), (40, 0.0)], WorkPhase(80.0)),
        ([(100, 0.9), (20, 0.0)], WorkPhase(0.0, 100.0)),
        # A moment of use on an idle card: no work, before other work neither.
        ([(60, 0.0), (2, 0.4), (58, 0.0)], WorkPhase(0.0)),
        ([(116, 0.0), (4, 0.9)], WorkPhase(116.0)),
        ([(10, 0.0), (2, 0.4), (90, 0.0), (18, 0.9)], WorkPhase(102.0)),
        # Bursts: each wait is of the work, until one is longer than all others.
        ([(5, 0.9), (35, 0.0), (5, 0.9), (35, 0.0), (5, 0.9), (35, 0.0)], WorkPhase(0.0, 85.0)),
        ([(10, 0.9), (15, 0.0), (10, 0.9), (15, 0.0), (10, 0.9), (60, 0.0)], WorkPhase(60.0)),
        ([(10, 0.9), (20, 0.0), (10, 0.9), (60, 0.0), (20, 0.9)], WorkPhase(100.0)),
        # Two works, and a rest between them.
        ([(20, 0.9), (40, 0.0), (60, 0.9)], WorkPhase(60.0)),
        ([(20, 0.9), (29, 0.0), (60, 0.9)], WorkPhase(0.0)),
        ([(10, 0.0), (10, 0.9), (60, 0.0), (5, 0.9), (35, 0.0)], WorkPhase(85.0)),
    ],
)
def test_when_a_phase_begins(parts, phase):
    assert current_phase(use(*parts)) == phase


def test_a_wait_that_is_not_over_does_not_change_the_verdict_on_the_work():
    # As an eight-card training that evaluated now and then, and ended: its last seconds made it "used in bursts".
    def evaluated(time):
        return 0.0 if time > 130 or time % 40 < 1 else 1.0

    history = a_history(utilization_fraction=evaluated)
    assert [diagnose(history, UUID, at).kind for at in (129.0, 140.0, 150.0)] == [VerdictKind.HEALTHY] * 3
    ended = a_history(seconds=170, utilization_fraction=evaluated)
    assert diagnose(ended, UUID).kind is VerdictKind.IDLE


def test_what_slowed_it_is_no_trouble_once_it_is_over():
    heat = {"clock_reasons": lambda time: 0x20 if 60 <= time < 100 else 0}
    assert diagnose(a_history(**heat), UUID, 100.0).kind is VerdictKind.THERMAL
    assert diagnose(a_history(**heat), UUID, 126.0).kind is VerdictKind.THERMAL
    assert diagnose(a_history(**heat), UUID, 131.0).kind is VerdictKind.HEALTHY


def test_troubles_are_those_of_now_also_while_it_waits():
    history = a_history(
        utilization_fraction=lambda time: 0.0 if time > 140 else 0.95,
        memory_free_bytes=lambda time: 2e8 if time > 140 else 9e9,
    )
    assert diagnose(history, UUID).kind is VerdictKind.NEAR_FULL


def test_what_began_while_it_waits_keeps_its_first_value_for_the_work():
    history = a_history(
        utilization_fraction=lambda time: 0.0 if time > 140 else 0.95,
        power_limit_watts=lambda time: 350.0 if time > 145 else None,
    )
    assert diagnose(history, UUID).kind is VerdictKind.HEALTHY


def test_what_was_read_before_the_work_only_keeps_its_last_value():
    history = a_history(
        utilization_fraction=lambda time: 0.95 if time > 60 else 0.0,
        power_watts=330.0,
        power_limit_watts=lambda time: 350.0 if time < 50 else None,
    )
    assert diagnose(history, UUID).kind is VerdictKind.COMPUTE_BOUND
