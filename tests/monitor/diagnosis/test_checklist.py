"""The optimization checklist: the status of each item from readings and from the verdict."""

import pytest
from diagnosis_kit import ORDINARY, UUID, a_device, a_history

from planner.monitor.diagnosis.checklist import CHECKLIST, consistent_with_verdict, evaluate_checklist
from planner.monitor.diagnosis.diagnose import diagnose
from planner.monitor.diagnosis.verdict import VerdictKind
from planner.monitor.readings.inventory import Inventory
from planner.units import GIB


def item_statuses(history, uuid=UUID):
    return {checked.item.name: checked.standing for checked in evaluate_checklist(history, uuid)}


def test_an_idle_card_has_no_checklist():
    assert evaluate_checklist(a_history(utilization_fraction=0.0), UUID) == ()
    assert evaluate_checklist(a_history(utilization_fraction=None), UUID) == ()


def test_a_card_that_is_too_hot_has_no_checklist_since_the_run_is_not_what_holds_it_back():
    history = a_history(clock_reasons=0x20)
    checked = evaluate_checklist(history, UUID)
    assert checked
    assert consistent_with_verdict(checked, diagnose(history, UUID)) == ()


def test_an_item_is_done_if_the_readings_meet_its_conditions():
    gpm = {"tensor_active_fraction": 0.6, "sm_active_fraction": 0.7}
    assert item_statuses(a_history(**gpm)) == {
        "profile": "unknown",
        "data-loading": "done",
        "batch-size": "done",
        "mixed-precision": "done",
        "pinned-memory": "done",
        "small-kernels": "to-do",
        "steady": "done",
    }


def test_an_unmeasured_item_is_unknown_and_a_failed_item_is_to_do():
    shape = {**dict.fromkeys(ORDINARY), "memory_used_bytes": 5 * GIB}
    found = item_statuses(a_history(**{**shape, "utilization_fraction": lambda time: 0.9 if time % 10 < 5 else 0.0}))
    assert (found["mixed-precision"], found["pinned-memory"]) == ("unknown", "unknown")
    assert (found["data-loading"], found["batch-size"], found["steady"]) == ("to-do", "to-do", "to-do")
    partly = a_history(**{**shape, "utilization_fraction": 0.9}, host={"cpu_fraction": None})
    assert item_statuses(partly)["data-loading"] == "unknown"


def test_an_item_that_the_verdict_implies_is_to_do():
    history = a_history(utilization_fraction=0.5, host={"cpu_fraction": 0.97})
    verdict, checked = diagnose(history, UUID), evaluate_checklist(history, UUID)
    assert (verdict.kind, item_statuses(history)["data-loading"]) == (VerdictKind.INPUT_BOUND, "done")
    assert {one.item.name: one.standing for one in consistent_with_verdict(checked, verdict)}["data-loading"] == "to-do"
    assert consistent_with_verdict(checked, diagnose(a_history(), UUID)) == checked


def test_an_unknown_card_has_no_checklist():
    with pytest.raises(KeyError):
        evaluate_checklist(a_history(inventory=Inventory("580", devices=(a_device(),))), "GPU-none")


def test_every_item_has_instructions_and_a_guide():
    assert CHECKLIST[0].name == "profile"
    assert all(item.how and item.guide.text and item.why.endswith(".") for item in CHECKLIST)
