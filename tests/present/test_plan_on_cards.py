"""The plan beside the cards of a machine: the sentence, what is drawn, and what can be planned for."""

import pytest

from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.reading import Reading
from planner.monitor.readings.sample import CardProcess, Sample
from planner.plan.evaluate import evaluate
from planner.plan.measured import predict_card
from planner.plan.plan import ModelChoice, Plan
from planner.present.monitor.plan_on_cards import PlanOnCards, compare_plan_with_cards, match_cards, plannable_cards
from planner.units import GIB, MIB
from planner.workload.workload import Training

A, B, C = "GPU-a", "GPU-b", "GPU-c"
PLAN = Plan(model=ModelChoice(id="openai-community/gpt2"), workload=Training(micro_batch=2), gpu="rtx-4090")
FACTS = {"memory_total_bytes": Reading(24_564 * MIB)}
FIRST, SECOND = (Device(uuid, "NVIDIA GeForce RTX 4090", at, facts=FACTS) for at, uuid in enumerate((A, B)))
OTHER = Device(C, "NVIDIA L40S", 2, facts={"memory_total_bytes": Reading(46_068 * MIB)})


@pytest.fixture
def evaluation(catalog):
    return evaluate(PLAN, catalog)


def standing(*devices, used=None, kind="compute"):
    latest = Latest()
    latest.note_inventory(Inventory("580", devices=devices))
    used = used or {}
    readings = {
        uuid: {"memory_used_bytes": Reading(value), "power_watts": Reading(300.0)} for uuid, value in used.items()
    }
    processes = tuple(CardProcess(7, uuid, kind, Reading(value - GIB)) for uuid, value in used.items())
    latest.note_sample(Sample(0.0, 0.0, readings, processes=processes))
    return latest


def said(evaluation, catalog, latest):
    return compare_plan_with_cards(evaluation, match_cards(catalog.hardware, latest.inventory.devices), latest)


def test_without_cards_or_a_planned_card_nothing_is_said(evaluation, catalog):
    assert said(evaluation, catalog, standing()) == PlanOnCards()
    lost = Device(A, "NVIDIA GeForce RTX 4090", 0, state="lost", facts=FACTS)
    assert said(evaluation, catalog, standing(lost)) == PlanOnCards()
    assert said(evaluate(PLAN.evolve(gpu=None), catalog), catalog, standing(FIRST)) == PlanOnCards()


def test_a_plan_for_another_card_says_so(evaluation, catalog):
    found = said(evaluation, catalog, standing(OTHER))
    assert found.sentence.endswith("which is not in this machine.")
    assert found.expected == {}


def test_before_anything_computes_the_prediction_stands_alone(evaluation, catalog):
    found = said(evaluation, catalog, standing(FIRST, OTHER))
    assert found.sentence.startswith("The plan predicts ")
    assert found.sentence.endswith(" on card 0; no process computes there yet.")
    assert found.expected == {A: predict_card(evaluation)}
    drawing = standing(FIRST, used={A: 2 * GIB}, kind="graphics")
    assert "no process computes there yet" in said(evaluation, catalog, drawing).sentence


def test_what_is_predicted_stands_beside_the_fullest_of_as_many_cards_as_are_planned(catalog):
    evaluation = evaluate(PLAN.evolve(count=2), catalog)
    found = said(evaluation, catalog, standing(FIRST, SECOND, used={A: 9 * GIB, B: 12 * GIB}))
    assert found.sentence.startswith("Card 1: predicted ")
    assert set(found.expected) == {A, B}
    found = said(evaluate(PLAN, catalog), catalog, standing(FIRST, SECOND, used={A: 9 * GIB, B: 12 * GIB}))
    assert found.sentence.startswith("Card 0: predicted ")
    assert set(found.expected) == {A}


def test_each_kind_of_card_is_offered_once_and_as_many_as_there_are(catalog):
    found = plannable_cards(match_cards(catalog.hardware, (FIRST, SECOND, OTHER)))
    assert [(offer.gpu.id, offer.cards) for offer in found] == [("rtx-4090", 1), ("l40s", 1), ("rtx-4090", 2)]
