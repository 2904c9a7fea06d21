"""Memory amounts in a log, added up by comparison row."""

import pytest
from log_texts import RUN, TRAIN, smi, summary

from planner.memory.logs.read import read_log
from planner.plan.evaluate import evaluate
from planner.plan.logs.comparison import compare_with_log
from planner.plan.logs.log_amounts import LogComparisonRow
from planner.units import GIB, MIB


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
