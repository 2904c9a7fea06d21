"""A prediction beside a measurement, in words."""

from dataclasses import replace

import pytest

from planner.plan.evaluate import evaluate
from planner.plan.measured import CardPrediction, MeasuredCard, PredictionCheck, check_prediction, largest_batches
from planner.plan.plan import ModelChoice, Plan
from planner.plan.solve import SolveResult
from planner.present import format as fmt
from planner.present.monitor.plan_on_cards import fill_sentence, measured_sentence
from planner.units import GIB, MIB
from planner.workload.workload import Training

T = fmt.THIN
PLAN = Plan(model=ModelChoice(id="openai-community/gpt2"), workload=Training(micro_batch=4), gpu="rtx-4090")


def found(measured=17.9, reason="in-range", likeliest="framework_overhead", basis="process"):
    held = int(measured * GIB)
    expected = CardPrediction(int(17.2 * GIB), 16 * GIB, 19 * GIB, 450.0)
    own = held if basis == "process" else None
    return PredictionCheck(expected, MeasuredCard(20 * GIB, own), basis, held, reason, likeliest)


@pytest.mark.parametrize(
    ("beside_it", "sentence"),
    [
        (found(), f"17.9{T}GiB: +4{T}%, mostly the device context and the allocator."),
        (found(likeliest="logits"), f"17.9{T}GiB: +4{T}%, mostly logits and loss."),
        (found(likeliest="kv_cache"), f"17.9{T}GiB: +4{T}%, mostly KV cache."),
        (found(17.25), f"17.2{T}GiB: within 1{T}%."),
        (
            found(12.0, "before-peak", None),
            f"12.0{T}GiB: −30{T}%; below the estimate's range, so the peak may not have been reached yet.",
        ),
        (
            found(20.0, "more-than-expected"),
            f"20.0{T}GiB: +16{T}%; above the estimate's range, so the running job may not be the planned one.",
        ),
        (
            found(20.0, "other-processes", None, "card"),
            f"20.0{T}GiB on the whole card: +16{T}%; above the estimate's range, in part because of other processes.",
        ),
    ],
)
def test_sentences(beside_it, sentence):
    assert measured_sentence(beside_it) == f"Predicted 17.2{T}GiB, measured {sentence}"


def test_of_several_processes_it_says_which_one_was_measured():
    several = replace(found(), measured=MeasuredCard(20 * GIB, int(17.9 * GIB), pid=4711, process_count=3))
    assert f"measured 17.9{T}GiB in process 4711, the largest of 3: +4{T}%, mostly" in measured_sentence(several)
    alone = replace(several, measured=MeasuredCard(20 * GIB, int(17.9 * GIB), pid=4711, process_count=1))
    assert "4711" not in measured_sentence(alone)


def test_an_engine_that_fills_the_card_is_said_to():
    held = MeasuredCard(20 * GIB, 20 * GIB, pid=7, process_count=1, engine="vLLM")
    sentence = measured_sentence(replace(found(20.0, "engine-fills-card", None), measured=held))
    assert sentence.endswith(
        f"+16{T}%; vLLM reserves most of the card when it starts, which this plan does not include."
    )


def test_by_how_much_the_batch_can_be_raised(catalog):
    solved = largest_batches(PLAN, catalog)
    sentence = fill_sentence(PLAN, solved)
    assert sentence.startswith(f"The batch can go from 4 to {solved[0].value}")
    full = PLAN.evolve(workload=Training(micro_batch=solved[1].value))
    assert fill_sentence(full, solved) == f"A larger batch than {solved[1].value} does not fit."
    reading = Plan(model=ModelChoice(id="openai-community/gpt2"), gpu="rtx-4090")
    assert fill_sentence(reading, largest_batches(reading, catalog)).startswith("The batch can go from 1 to ")
    assert fill_sentence(PLAN, None) == ""
    nothing = SolveResult(asked="micro_batch", reason="not even 1 fits")
    assert fill_sentence(PLAN, (nothing, nothing)) == "A larger batch than 4 does not fit."


def test_a_real_evaluation_beside_a_little_more(catalog):
    evaluation = evaluate(PLAN, catalog)
    measured = MeasuredCard(20 * GIB, evaluation.memory.total_bytes + 150 * MIB)
    assert measured_sentence(check_prediction(evaluation, measured)).endswith(
        "%, mostly the device context and the allocator."
    )
