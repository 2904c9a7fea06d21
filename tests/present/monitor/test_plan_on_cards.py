"""The plan compared with the cards of this machine: sentences, predictions, and cards to plan for."""

from dataclasses import replace

import pytest

from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.reading import Reading
from planner.monitor.readings.sample import CardProcess, Sample
from planner.plan.evaluate import evaluate
from planner.plan.measured import (
    CardPrediction,
    MeasuredCard,
    PredictionCheck,
    check_prediction,
    largest_batches,
    predict_card,
)
from planner.plan.plan import ModelChoice, Plan
from planner.plan.solve import SolveResult
from planner.present import format as fmt
from planner.present.monitor.plan_on_cards import (
    PlanOnCards,
    compare_plan_with_cards,
    largest_batch_sentence,
    match_cards,
    measured_sentence,
    plannable_cards,
)
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


def latest_state(*devices, used=None, kind="compute"):
    latest = Latest()
    latest.note_inventory(Inventory("580", devices=devices))
    used = used or {}
    readings = {
        uuid: {"memory_used_bytes": Reading(value), "power_watts": Reading(300.0)} for uuid, value in used.items()
    }
    processes = tuple(CardProcess(7, uuid, kind, Reading(value - GIB)) for uuid, value in used.items() if kind)
    latest.note_sample(Sample(0.0, 0.0, readings, processes=processes))
    return latest


def comparison(evaluation, catalog, latest):
    return compare_plan_with_cards(evaluation, match_cards(catalog.hardware, latest.inventory.devices), latest)


def test_without_cards_or_a_planned_card_there_is_no_comparison(evaluation, catalog):
    assert comparison(evaluation, catalog, latest_state()) == PlanOnCards()
    lost = Device(A, "NVIDIA GeForce RTX 4090", 0, state="lost", facts=FACTS)
    assert comparison(evaluation, catalog, latest_state(lost)) == PlanOnCards()
    assert comparison(evaluate(PLAN.evolve(gpu=None), catalog), catalog, latest_state(FIRST)) == PlanOnCards()


def test_a_plan_for_another_card_says_so(evaluation, catalog):
    found = comparison(evaluation, catalog, latest_state(OTHER))
    assert found.sentence.endswith("which is not among these GPUs.")
    assert found.expected == {}


def test_before_a_process_computes_there_is_only_the_prediction(evaluation, catalog):
    found = comparison(evaluation, catalog, latest_state(FIRST, OTHER))
    assert found.sentence.startswith("The plan predicts ")
    assert found.sentence.endswith(" on GPU 0; no process computes there yet.")
    assert found.expected == {A: predict_card(evaluation)}
    drawing = latest_state(FIRST, used={A: 2 * GIB}, kind="graphics")
    assert "no process computes there yet" in comparison(evaluation, catalog, drawing).sentence


def test_memory_in_use_without_a_visible_process_is_said(evaluation, catalog):
    hidden = latest_state(FIRST, used={A: 2 * GIB}, kind=None)
    sentence = comparison(evaluation, catalog, hidden).sentence
    assert sentence.endswith(f"on GPU 0; 2.00{fmt.THIN}GiB are in use by processes that cannot be seen here.")


def test_the_prediction_is_compared_with_the_fullest_of_the_planned_number_of_cards(catalog):
    evaluation = evaluate(PLAN.evolve(count=2), catalog)
    found = comparison(evaluation, catalog, latest_state(FIRST, SECOND, used={A: 9 * GIB, B: 12 * GIB}))
    assert found.sentence.startswith("GPU 1: predicted ")
    assert set(found.expected) == {A, B}
    found = comparison(evaluate(PLAN, catalog), catalog, latest_state(FIRST, SECOND, used={A: 9 * GIB, B: 12 * GIB}))
    assert found.sentence.startswith("GPU 0: predicted ")
    assert set(found.expected) == {A}


def test_one_card_of_each_kind_and_all_of_a_kind_can_be_planned_for(catalog):
    found = plannable_cards(match_cards(catalog.hardware, (FIRST, SECOND, OTHER)))
    assert [(offer.gpu.id, offer.cards) for offer in found] == [("rtx-4090", 1), ("l40s", 1), ("rtx-4090", 2)]


THIN = fmt.THIN
MEASURED_PLAN = Plan(model=ModelChoice(id="openai-community/gpt2"), workload=Training(micro_batch=4), gpu="rtx-4090")


def checked_prediction(measured=17.9, reason="in-range", likeliest="framework_overhead", basis="process"):
    held = int(measured * GIB)
    expected = CardPrediction(int(17.2 * GIB), 16 * GIB, 19 * GIB, 450.0)
    own = held if basis == "process" else None
    return PredictionCheck(expected, MeasuredCard(20 * GIB, own), basis, held, reason, likeliest)


@pytest.mark.parametrize(
    ("check", "sentence"),
    [
        (checked_prediction(), f"17.9{THIN}GiB (+4{THIN}%), probably because of the GPU context and the allocator."),
        (checked_prediction(likeliest="logits"), f"17.9{THIN}GiB (+4{THIN}%), probably because of logits and loss."),
        (checked_prediction(likeliest="kv_cache"), f"17.9{THIN}GiB (+4{THIN}%), probably because of KV cache."),
        (
            checked_prediction(likeliest="communication"),
            f"17.9{THIN}GiB (+4{THIN}%), probably because of communication buffers.",
        ),
        (checked_prediction(17.25), f"17.2{THIN}GiB (within 1{THIN}%)."),
        (
            checked_prediction(12.0, "before-peak", None),
            f"12.0{THIN}GiB (−30{THIN}%); below the estimate's range, so the peak may not have been reached yet.",
        ),
        (
            checked_prediction(20.0, "more-than-expected"),
            f"20.0{THIN}GiB (+16{THIN}%); above the estimate's range, so the running job may not be the planned one.",
        ),
        (
            checked_prediction(20.0, "other-processes", None, "card"),
            f"20.0{THIN}GiB on the whole GPU (+16{THIN}%); above the estimate's range, "
            "in part because of other processes.",
        ),
    ],
)
def test_the_measured_sentence_gives_difference_and_reason(check, sentence):
    assert measured_sentence(check) == f"Predicted 17.2{THIN}GiB, measured {sentence}"


def test_the_measured_process_is_named_if_there_are_several():
    several = replace(checked_prediction(), measured=MeasuredCard(20 * GIB, int(17.9 * GIB), pid=4711, process_count=3))
    two = replace(several, measured=replace(several.measured, process_count=2))
    assert "in process 4711, the largest of 2 " in measured_sentence(two)
    assert f"measured 17.9{THIN}GiB in process 4711, the largest of 3 (+4{THIN}%), probably" in measured_sentence(
        several
    )
    alone = replace(several, measured=MeasuredCard(20 * GIB, int(17.9 * GIB), pid=4711, process_count=1))
    assert "4711" not in measured_sentence(alone)


def test_an_engine_that_reserves_the_card_is_named():
    held = MeasuredCard(20 * GIB, 20 * GIB, pid=7, process_count=1, engine="vLLM")
    sentence = measured_sentence(replace(checked_prediction(20.0, "engine-fills-card", None), measured=held))
    assert sentence.endswith(
        f"(+16{THIN}%); vLLM reserves most of the GPU when it starts, which this plan does not include."
    )


def test_how_far_the_batch_size_can_grow(catalog):
    solved = largest_batches(MEASURED_PLAN, catalog)
    sentence = largest_batch_sentence(MEASURED_PLAN, solved)
    assert sentence.startswith(f"The batch size can go from 4 to {solved[0].value}")
    full = MEASURED_PLAN.evolve(workload=Training(micro_batch=solved[1].value))
    assert largest_batch_sentence(full, solved) == f"A batch size above {solved[1].value} does not fit."
    reading = Plan(model=ModelChoice(id="openai-community/gpt2"), gpu="rtx-4090")
    assert largest_batch_sentence(reading, largest_batches(reading, catalog)).startswith(
        "The batch size can go from 1 to "
    )
    assert largest_batch_sentence(MEASURED_PLAN, None) == ""
    nothing = SolveResult(asked="micro_batch", reason="not even 1 fits")
    assert largest_batch_sentence(MEASURED_PLAN, (nothing, nothing)) == "A batch size above 4 does not fit."


def test_an_evaluated_plan_compared_with_slightly_more_memory(catalog):
    evaluation = evaluate(MEASURED_PLAN, catalog)
    measured = MeasuredCard(20 * GIB, evaluation.memory.total_bytes + 150 * MIB)
    assert measured_sentence(check_prediction(evaluation, measured)).endswith(
        "%), probably because of the GPU context and the allocator."
    )
