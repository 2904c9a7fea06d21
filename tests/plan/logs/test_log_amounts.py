"""Memory amounts in a log, added up by comparison row."""

import pytest
from log_texts import RUN, TRAIN, corrected, llama_cpp, smi, summary

from planner.memory.logs.read import read_log
from planner.plan.evaluate import evaluate
from planner.plan.logs.comparison import compare_plan, compare_with_log
from planner.plan.logs.log_amounts import (
    LogComparisonRow,
    MeasuredAmount,
    _largest_working_term,
    counter_correction,
    suggest_correction,
)
from planner.units import GIB, MIB
from planner.workload.workload import Inference


def test_a_pool_of_unknown_tokens_is_not_compared_with_the_cache(compared):
    found = compared("Available KV cache memory: 8.11 GiB")
    assert found.row("kv_cache") is None
    assert found.row("pool").actual_bytes == round(8.11 * GIB)


def test_weights_on_several_devices_are_added_up(compared, catalog):
    workers = "".join(f"(Worker_TP{rank} pid=1) INFO Model loading took 7.50 GiB\n" for rank in (0, 1))
    found = compared(workers)
    assert found.row("weights").actual_bytes == pytest.approx(15 * GIB, abs=2)
    assert "2 devices" in found.notes[-1]
    copies = compare_with_log(evaluate(RUN.evolve(count=2), catalog), read_log(workers), catalog)
    assert copies.row("weights").actual_bytes == pytest.approx(15 * GIB, abs=2)


def test_allocated_and_reserved_memory_are_distinguished(compared):
    found = compared(summary(23501, 23900) + "\n" + smi(24412, 24391), TRAIN)
    assert found.row("allocated").actual_bytes == 23501 * MIB
    assert "holds 0.39 GiB beyond its tensors" in found.row("reserved").explanation
    assert found.row("process").at_least
    assert found.row("card-total").explanation == "The log and the estimate agree within 1 %."
    assert found.row("sum") is None


def test_the_largest_of_several_readings_of_a_counter_counts(compared):
    assert compared(summary(23501, 23900) + summary(100, 200), TRAIN).row("allocated").actual_bytes == 23501 * MIB


def test_a_term_without_a_row_is_not_compared(catalog):
    reading = read_log("Model loading took 7.50 GiB")
    (weights,) = reading.measured
    more = reading.evolve(measured=(weights, weights.evolve(term="gradients")))
    found = compare_with_log(evaluate(RUN, catalog), more, catalog)
    assert found.row("weights").actual_bytes == weights.bytes


def test_a_row_is_in_range_unless_it_is_outside_or_has_no_range():
    row = LogComparisonRow(name="process", predicted_bytes=10, actual_bytes=8, low_bytes=8, high_bytes=8)
    assert row.is_in_range is None
    ranged = row.evolve(predicted_low_bytes=9, predicted_high_bytes=12)
    assert ranged.is_in_range is False
    assert ranged.evolve(high_bytes=9).is_in_range is True
    assert ranged.evolve(at_least=True).is_in_range is True
    assert ranged.evolve(at_least=True, actual_bytes=13, low_bytes=13, high_bytes=13).is_in_range is False


def test_the_comparison_ignores_existing_corrections(catalog):
    made, _ = corrected(TRAIN, catalog, summary(23501, 23900))
    again = compare_plan(TRAIN.evolve(corrections=(made,)), catalog, read_log(summary(23501, 23900)))
    assert again == compare_plan(TRAIN, catalog, read_log(summary(23501, 23900)))


def test_a_log_of_another_run_corrects_nothing(catalog):
    comparison = compare_plan(TRAIN, catalog, read_log(summary(2350, 2390)))
    assert "not from a run of this plan" in comparison.row("allocated").explanation
    assert suggest_correction(comparison, evaluate(TRAIN, catalog), "2026-10-03", "ab") is None


@pytest.mark.parametrize(("measured", "is_corrected"), [(699, False), (700, True), (1_400, True), (1_401, False)])
def test_what_is_from_seven_tenths_to_seven_fifths_of_the_estimate_corrects_it(catalog, measured, is_corrected):
    actual = MeasuredAmount(measured * MIB, measured * MIB, measured * MIB, "peak", ())
    found = counter_correction("process", 1_000 * MIB, 0, actual, evaluate(TRAIN, catalog))
    assert [item.added_bytes for item in found] == [(measured - 1_000) * MIB] * is_corrected


def test_a_lower_bound_never_reduces_the_estimate(catalog):
    comparison = compare_plan(TRAIN, catalog, read_log(smi(1000, 900)))
    assert suggest_correction(comparison, evaluate(TRAIN, catalog), "2026-10-03", "ab") is None
    more = compare_plan(TRAIN, catalog, read_log(smi(30000, 29000)))
    assert [item.term for row in more.rows for item in row.corrections] == ["framework_overhead"]


def test_terms_other_than_weights_are_corrected_by_a_factor(catalog):
    plan = RUN.evolve(workload=Inference(context_length=32_768, weights="Q4_K_M"))
    predicted = compare_plan(plan, catalog, read_log(llama_cpp())).row("kv_cache").predicted_bytes
    text = llama_cpp(cache=1.2 * predicted / MIB)
    comparison = compare_plan(plan, catalog, read_log(text))
    factors = {item.term: item.factor for item in comparison.row("kv_cache").corrections}
    assert factors["kv_cache"] == pytest.approx(1.2, rel=1e-4)
    other = compare_plan(plan, catalog, read_log(llama_cpp(context=4096, cache=1.2 * predicted / MIB)))
    assert other.row("kv_cache").corrections == ()


def test_weights_are_corrected_by_bytes(catalog):
    plan = RUN.evolve(workload=RUN.workload.evolve(profile="vllm"))
    made, evaluation = corrected(plan, catalog, "Model loading took 15.5000 GiB and 3.6 seconds")
    assert [item.term for item in made.terms] == ["weights"]
    assert evaluation.memory.term("weights").bytes == round(15.5 * GIB)


def test_without_a_card_nothing_is_corrected(catalog):
    plan = TRAIN.evolve(gpu=None)
    comparison = compare_plan(plan, catalog, read_log(summary(23501, 23900)))
    assert comparison.row("allocated").corrections == ()
    assert evaluate(plan, catalog).correction_key is None
    assert suggest_correction(comparison, evaluate(plan, catalog), "2026-10-03", "ab") is None


@pytest.mark.parametrize(("allocated", "reserved"), [(23501, 23900), (25100, 25300)])
def test_a_corrected_estimate_is_what_the_log_shows(catalog, allocated, reserved):
    made, evaluation = corrected(TRAIN, catalog, summary(allocated, reserved) + "\n" + smi(26000, 25900))
    assert evaluation.memory.allocated_bytes == allocated * MIB
    assert evaluation.memory.reserved_bytes == reserved * MIB
    assert evaluation.memory.total_bytes == 25900 * MIB
    assert evaluation.applied_corrections == (made,)
    assert evaluation.correction_key == made.key
    assert made.log == "nvidia-smi, torch-summary"


def test_what_memory_differs_by_is_added_to_the_largest_term_that_comes_and_goes(catalog):
    evaluation = evaluate(TRAIN, catalog)
    working = {term.name: term.bytes for term in evaluation.memory.terms if term.name in ("activations", "logits")}
    assert len(working) == 2
    assert _largest_working_term(evaluation) == max(working, key=working.__getitem__)
