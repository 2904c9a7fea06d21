"""Recordings and captures of real cards lead to the correct verdict."""

import pytest
from diagnosis_kit import CAPTURES, RECORDINGS, UUID, a_capture, a_process, a_recording

from planner.monitor.diagnosis.diagnose import diagnose
from planner.monitor.diagnosis.verdict import VerdictKind
from planner.units import MIB


def verdict_of(history, **options):
    return diagnose(history, UUID, **options)


def test_every_recording_says_where_it_is_from_and_under_which_licence():
    for recording in RECORDINGS.values():
        assert "commit" in recording["source"]
        assert recording["licence"].startswith(("MIT", "Apache-2.0"))


def test_a_training_that_saturates_is_healthy():
    verdict = verdict_of(a_recording("saturating"))
    assert (verdict.kind, verdict.severity) == (VerdictKind.HEALTHY, "good")
    # The recording does not tell the card's limit; the same card drew 696 W elsewhere, so that 700 W are likely.
    assert verdict_of(a_recording("saturating", power_limit_watts=700.0)).kind is VerdictKind.HEALTHY


def test_a_training_at_full_power_computes():
    verdict = verdict_of(a_recording("full-power", power_limit_watts=700.0))
    assert (verdict.kind, verdict.severity) == (VerdictKind.COMPUTE_BOUND, "good")
    assert verdict_of(a_recording("full-power")).kind is VerdictKind.HEALTHY


def test_no_false_alarm_while_a_training_starts():
    recording = [a_recording("full-power", until=until, power_limit_watts=700.0) for until in range(30, 200, 5)]
    kinds = [verdict_of(history).kind for history in recording]
    assert list(dict.fromkeys(kinds)) == [VerdictKind.TOO_EARLY, VerdictKind.COMPUTE_BOUND]


def test_bursts_of_a_training_that_waits_for_data_fluctuate():
    verdict = verdict_of(a_recording("bursts"))
    assert (verdict.kind, verdict.severity) == (VerdictKind.FLUCTUATING, "warning")
    assert "num_workers" in verdict.advice[0]


def test_the_same_bursts_beside_a_full_processor_are_bound_by_the_input():
    # The recording holds nothing of the processor: that it was full is made up.
    history = a_recording("bursts", host={"cpu_fraction": 0.97})
    verdict = verdict_of(history)
    assert (verdict.kind, verdict.severity) == (VerdictKind.INPUT_BOUND, "warning")
    starved = next(one for one in verdict.evidence if one.metric == "starved_by_cpu")
    assert starved.source.text.startswith("AWS SageMaker Debugger, CPUBottleneck")


def test_what_is_left_after_a_run_is_idle():
    assert (
        verdict_of(a_recording("idle-held"), at=115.0).kind is VerdictKind.IDLE
    )  # nothing is known of processes there
    assert verdict_of(a_recording("idle")).kind is VerdictKind.IDLE


EXPECTED = {
    ("rtx-2080-super", "idle"): VerdictKind.IDLE,
    ("rtx-2080-super", "load"): VerdictKind.MEDIA,
    ("rtx-4080-super", "idle"): VerdictKind.IDLE,
    ("rtx-4080-super", "load"): VerdictKind.MEDIA,
    ("h100-80gb", "idle"): VerdictKind.IDLE,
    ("h100-80gb", "load"): VerdictKind.COMPUTE_BOUND,
    ("h200__", "idle"): VerdictKind.IDLE,
    ("h200__", "load"): VerdictKind.COMPUTE_BOUND,
    ("-mig__", "idle"): VerdictKind.UNKNOWN,
    ("-mig__", "load"): VerdictKind.UNKNOWN,
    ("l40s", "idle"): VerdictKind.UNEXPLAINED,
    ("l40s", "load"): VerdictKind.MEDIA,
}


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda one: f"{one['capture']}-{one['load']}")
def test_captured_cards(capture):
    expected = next(
        kind for (name, load), kind in EXPECTED.items() if name in capture["capture"] and load == capture["load"]
    )
    verdict = verdict_of(a_capture(capture))
    assert verdict.kind is expected
    assert verdict.severity in ("good", "note")
    assert verdict.also == ()


def test_a_card_in_mig_mode_says_what_is_not_known_and_tells_the_rest():
    capture = next(one for one in CAPTURES if "h100-mig" in one["capture"] and one["load"] == "load")
    verdict = verdict_of(a_capture(capture))
    assert "not reported in MIG mode" in verdict.sentence
    seen = {one.metric: one.seen for one in verdict.evidence}
    assert seen["memory_full_fraction"] == pytest.approx(11125 / 81559)
    assert seen["power_of_limit_fraction"] == pytest.approx(433.78 / 700)


def test_a_desktop_that_holds_memory_is_idle_and_a_notebook_is_idle_but_holds_it():
    capture = next(one for one in CAPTURES if "4080" in one["capture"] and one["load"] == "idle")
    desktop = a_process(memory=500 * MIB, kind="graphics")
    assert verdict_of(a_capture(capture, (desktop,))).kind is VerdictKind.IDLE
    notebook = verdict_of(a_capture(capture, (desktop, a_process(memory=500 * MIB, pid=2))))
    assert notebook.kind is VerdictKind.IDLE_HELD
    assert next(one.seen for one in notebook.evidence if one.metric == "held_memory_bytes") == 500 * MIB
