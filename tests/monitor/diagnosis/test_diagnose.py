"""Verdicts on a card from the history of its readings."""

from dataclasses import replace

import pytest
from diagnosis_kit import FACTS, OTHER, UUID, a_device, a_history, a_process, stretch
from hypothesis import given
from hypothesis import strategies as st

from planner.monitor.diagnosis.card_window import (
    HOST_PREFIX,
    LONG_SUFFIX,
    CardWindow,
)
from planner.monitor.diagnosis.diagnose import diagnose, diagnose_window
from planner.monitor.diagnosis.verdict import VerdictKind
from planner.monitor.readings.faults import Fault, FaultKind
from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.metrics import BY_NAME, HOST_BY_NAME
from planner.monitor.readings.reading import Cause, missing
from planner.monitor.readings.sample import Sample
from planner.units import GIB


def test_work_of_a_few_seconds_gets_only_instant_verdicts():
    assert diagnose(a_history(seconds=10), UUID).kind is VerdictKind.TOO_EARLY
    assert "20 seconds of steady work; 10 so far" in diagnose(a_history(seconds=10), UUID).sentence
    assert diagnose(a_history(seconds=10, memory_used_bytes=23.9 * GIB), UUID).kind is VerdictKind.NEAR_FULL
    assert diagnose(a_history(seconds=40, every=10), UUID).kind is VerdictKind.HEALTHY
    started = a_history(utilization_fraction=lambda time: 0.98 if time > 140 else 0.0)
    assert diagnose(started, UUID).kind is VerdictKind.TOO_EARLY
    stopped = a_history(utilization_fraction=lambda time: 0.98 if time < 100 else 0.0)
    assert diagnose(stopped, UUID).kind is VerdictKind.IDLE_HELD
    assert diagnose(stopped, UUID).since == 100.0


def test_a_driver_that_does_not_respond_is_the_reason_for_unknown_utilization():
    history = a_history(seconds=10)
    history.note(replace(history.inventory, faults=(Fault(FaultKind.NOT_ANSWERING, 1e9),)))
    history.note(Sample(11.0, 1e9 + 11))
    verdict = diagnose(history, UUID)
    assert verdict.kind is VerdictKind.UNKNOWN
    assert "not known: the driver does not respond." in verdict.sentence


def test_a_card_that_alone_does_not_answer_is_not_judged_by_what_it_did_before():
    history = a_history()
    assert diagnose(history, UUID).kind is VerdictKind.HEALTHY
    silent = Fault(FaultKind.CARD_NOT_ANSWERING, 1e9, UUID, "nvmlX")
    history.note(replace(history.inventory, faults=(silent,)))
    verdict = diagnose(history, UUID)
    assert (verdict.kind, verdict.severity, verdict.title) == (VerdictKind.UNKNOWN, "warning", "no answer")
    assert verdict.sentence == "The driver does not respond for this GPU."


def test_an_earlier_time_is_diagnosed_without_processes():
    history = a_history(utilization_fraction=0.0, processes=[a_process()])
    assert diagnose(history, UUID).kind is VerdictKind.IDLE_HELD
    earlier = diagnose(history, UUID, at=100.0)
    assert earlier.kind is VerdictKind.IDLE_HELD
    assert earlier.sentence.endswith("by which process.")


@pytest.mark.parametrize(("state", "kind", "severity"), [("lost", "lost", "error"), ("asleep", "asleep", "note")])
def test_a_lost_or_sleeping_card_has_a_verdict_with_advice(state, kind, severity):
    history = a_history(inventory=Inventory("580", devices=(a_device(state=state),)))
    verdict = diagnose(history, UUID)
    assert (verdict.kind, verdict.severity) == (kind, severity)
    assert verdict.advice


def test_no_readings_give_an_unknown_verdict_and_an_unknown_card_an_error():
    history = a_history(seconds=-1)
    assert (diagnose(history, UUID).kind, diagnose(history, UUID).at) == (VerdictKind.UNKNOWN, 0.0)
    assert "second reading" in diagnose(history, UUID).sentence
    with pytest.raises(KeyError):
        diagnose(history, "GPU-none")


def test_a_log_without_utilization_is_named_as_the_reason():
    found = diagnose(a_history(utilization_fraction=None), UUID)
    assert (found.kind, found.sentence.split(": ")[1][:24]) == (VerdictKind.UNKNOWN, "not in the recorded data")


def test_a_card_of_unknown_memory_size_is_diagnosed_by_other_quantities():
    bare = {"inventory": Inventory("580", devices=(a_device(facts={}),)), "host": {"cpu_fraction": None}, "cores": 0}
    assert diagnose(a_history(**bare), UUID).kind is VerdictKind.HEALTHY
    processes = [a_process(), a_process(OTHER)]
    found = diagnose(a_history(**bare, utilization_fraction=None, processes=processes), UUID)
    assert (found.kind, [one.metric for one in found.evidence]) == (VerdictKind.UNKNOWN, ["power_of_limit_fraction"])


def test_an_unfinished_wait_does_not_change_the_verdict_on_the_work():
    # As an eight-card training that evaluated now and then, and ended: its last seconds made it "used in bursts".
    def evaluated(time):
        return 0.0 if time > 130 or time % 40 < 1 else 1.0

    history = a_history(utilization_fraction=evaluated)
    assert [diagnose(history, UUID, at).kind for at in (129.0, 140.0, 150.0)] == [VerdictKind.HEALTHY] * 3
    ended = a_history(seconds=170, utilization_fraction=evaluated)
    assert diagnose(ended, UUID).kind is VerdictKind.IDLE_HELD


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


@given(windows())
def test_any_readings_lead_to_one_verdict_that_its_evidence_supports(window):
    verdict = diagnose_window(window, 60.0)
    assert verdict.kind in VerdictKind
    assert verdict.since <= verdict.at
    assert all(one.condition is None or one.condition.holds(one.seen) for one in verdict.evidence)
    assert verdict.kind not in {other.kind for other in verdict.also}


def test_what_a_driver_does_not_report_is_named_and_in_mig_mode_the_engine_is_judged():
    history = a_history(utilization_fraction=None, graphics_active_fraction=0.9)
    told = {"clock_reasons": missing(Cause.NOT_SUPPORTED), "utilization_fraction": missing(Cause.MIG)}
    history.note(Sample(151.0, 1e9 + 151, {UUID: told}))
    verdict = diagnose(history, UUID)
    assert verdict.unreported == ("clock_reasons",)
    assert verdict.kind is not VerdictKind.UNKNOWN
