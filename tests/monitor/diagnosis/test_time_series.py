"""What is made of values over time, by hand; and that whatever is read leads to one verdict that its evidence bears."""

import pytest
from diagnosis_kit import FACTS, a_device, a_process
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.monitor.diagnosis.advice import CHECKPOINTING
from planner.monitor.diagnosis.card_window import (
    DERIVED_QUANTITIES,
    HOST_PREFIX,
    LONG_SUFFIX,
    CardWindow,
    link_bytes_per_s,
)
from planner.monitor.diagnosis.checklist import CHECKLIST
from planner.monitor.diagnosis.diagnose import diagnose_window
from planner.monitor.diagnosis.rules import RULES
from planner.monitor.diagnosis.time_series import STATISTICS, Episode, TimeSeries
from planner.monitor.diagnosis.verdict import VerdictKind
from planner.monitor.readings.metrics import BY_NAME, HOST_BY_NAME


def stretch(*values, every=1.0):
    return TimeSeries(tuple(place * every for place in range(len(values))), values)


@pytest.mark.parametrize(("share", "value"), [(0.0, 1.0), (0.5, 3.0), (0.95, 4.8), (1.0, 5.0), (0.25, 2.0)])
def test_quantiles_lie_between_the_nearest_values(share, value):
    assert stretch(5.0, 1.0, 4.0, 2.0, 3.0).quantile(share) == pytest.approx(value)
    assert stretch(7.0).quantile(share) == 7.0


@pytest.mark.parametrize(
    ("values", "growth"),
    [
        ((1, 2, 3, 4, 5, 6), 5.0),
        ((1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6), 5.0),
        ((1, 2, 3, 3, 4, 5), 0.0),  # it stopped for a while
        ((1, 1.1, 1.2, 5, 5.1, 5.2), 0.0),  # one step was nearly all of it
        ((6, 5, 4, 3, 2, 1), 0.0),
        ((1, 2, 3), 0.0),  # too few to tell
        ((1,), 0.0),
    ],
)
def test_growth_is_steady(values, growth):
    assert stretch(*values).growth == pytest.approx(growth)


@pytest.mark.parametrize(
    ("values", "falls"),
    [
        ((1, 0, 1, 0, 1), 2),
        ((1, 0.5, 0.2, 0.1, 0.8, 0.5, 0.9, 0.3), 2),
        ((0, 1), 0),
        ((0.6, 0.1, 0.6, 0.1), 0),
        ((1.0, 1.0), 0),
    ],
)
def test_falls_are_counted_from_high_to_low(values, falls):
    assert stretch(*values).swings == falls


def test_runs_of_one_side_of_a_level():
    assert list(stretch(0, 0, 1, 1, 0).episodes(0.5)) == [
        Episode(False, 0, 2),
        Episode(True, 2, 4),
        Episode(False, 4, 4),
    ]
    assert list(stretch(1).episodes(0.5)) == [Episode(True, 0, 0)]


def test_values_stand_until_the_next():
    slow = TimeSeries((1.0, 4.0), (10.0, 20.0))
    assert slow.at_times((0.5, 1.0, 3.9, 4.0, 9.0)) == [None, 10.0, 10.0, 20.0, 20.0]
    assert slow.at_times((1.0, 4.0)) == (10.0, 20.0)
    together = stretch(1, 2, 3, 4, 5).combine(lambda one, other: one * other, slow)
    assert together == TimeSeries((1.0, 2.0, 3.0, 4.0), (20.0, 30.0, 40.0, 100.0))
    assert stretch(1).combine(lambda one, other: one, slow) is None
    assert stretch(1).combine(lambda _: None) is None


@pytest.mark.parametrize(
    ("generation", "lanes", "gigabytes"), [(1, 16, 4.0), (3, 16, 15.75), (4, 16, 31.5), (5, 8, 31.5)]
)
def test_what_links_carry(generation, lanes, gigabytes):
    assert link_bytes_per_s(generation, lanes) == pytest.approx(gigabytes * 1e9, rel=1e-3)
    assert link_bytes_per_s(9, lanes) is None


def test_rules_ask_for_what_there_is_and_say_where_thresholds_come_from():
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


fractions = st.floats(0, 1, width=16)
amounts = st.floats(0, 2**35, width=32)
_NAMES = (*BY_NAME, *(f"{HOST_PREFIX}{name}" for name in HOST_BY_NAME), f"memory_used_bytes{LONG_SUFFIX}")


@st.composite
def windows(draw):
    length = draw(st.integers(1, 12))
    read = {}
    for name in draw(st.sets(st.sampled_from(_NAMES), max_size=12)) | {"utilization_fraction"}:
        values = fractions if name.endswith("_fraction") else amounts
        read[name] = stretch(*draw(st.lists(values, min_size=length, max_size=length)), every=5.0)
    processes = draw(st.sampled_from([None, (), (a_process(),), (a_process(memory=None, cpu=None),)]))
    facts = draw(st.sampled_from([{}, FACTS]))
    return CardWindow(a_device(facts=facts), read.get, processes, draw(st.sampled_from([None, 8])))


@settings(max_examples=150)
@given(windows())
def test_whatever_is_read_leads_to_one_verdict_that_its_evidence_bears(window):
    verdict = diagnose_window(window, 60.0)
    assert verdict.kind in VerdictKind
    assert verdict.since <= verdict.at
    assert all(one.condition is None or one.condition.holds(one.seen) for one in verdict.evidence)
    assert verdict.kind not in {other.kind for other in verdict.also}
