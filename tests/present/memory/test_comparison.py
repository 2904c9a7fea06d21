"""Comparisons of two plans, and of an estimate with a trace."""

import re

from planner.memory.result import MemoryResult, Phase, Term
from planner.plan.comparison import compare_evaluations
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.present.memory.comparison import VersusRow, compare_parts, comparison_sentence, versus_view
from planner.units import GIB, MIB
from planner.workload.training import Training
from planner.workload.workload import Inference

LLAMA = ModelChoice(id="meta-llama/Llama-3.1-8B")


READING = Plan(model=LLAMA, gpu="rtx-4090")


LEARNING = Plan(model=LLAMA, workload=Training(method="lora"), gpu="rtx-4090")


def seen(plan, other, catalog):
    evaluation = evaluate(plan, catalog)
    return versus_view(evaluation, compare_evaluations(evaluation, evaluate(other, catalog)), catalog)


def result(phase: str = "backward", **gib: float) -> MemoryResult:
    terms = tuple(
        Term(
            name=name,
            bytes=round(size * GIB),
            formula="",
            symbols=(),
            source="a test",
            certainty="exact",
            low_bytes=round(size * GIB),
            high_bytes=round(size * GIB),
        )
        for name, size in gib.items()
    )
    total = sum(term.bytes for term in terms)
    return MemoryResult(
        total_bytes=total,
        low_bytes=total,
        high_bytes=total,
        allocated_bytes=total,
        reserved_bytes=total,
        peak_phase=phase,
        terms=terms,
        phases=(Phase(name=phase, bytes=total, shares=(), explanation=""),),
    )


def test_a_comparison_has_both_verdicts_the_settings_and_the_terms(catalog):
    view = seen(READING.evolve(workload=Inference(batch=4)), READING, catalog)
    text = view.as_text().replace("\u2009", " ")
    assert view.sentence.startswith("This plan needs ")
    assert " more per GPU than the other plan: " in view.sentence
    assert view.settings == ("Batch size: 4 instead of 1",)
    assert view.view.answer in view.as_text()
    assert view.other.answer in view.as_text()
    cache = next(line for line in text.splitlines() if line.startswith("KV cache"))
    assert cache.split()[-3:] == ["2.00", "0.50", "+1.50"]


def test_the_sentence_says_more_less_or_equal(catalog):
    assert (
        " less per GPU than the other plan: "
        in seen(READING, READING.evolve(workload=Inference(batch=4)), catalog).sentence
    )
    same = seen(READING, READING, catalog)
    assert same.sentence.startswith("Both need ")
    assert same.settings == ("The settings are the same",)
    assert {row.gib_texts[2] for row in same.rows} == {"0.00"}


def test_a_small_difference_is_told_in_the_figures_that_differ(catalog):
    longer = seen(READING.evolve(workload=Inference(context_length=8_192)), READING, catalog)
    text = longer.sentence.replace("\u2009", " ")
    assert re.search(r": 16\.\d\d GiB instead of 16\.\d\d GiB\.", text)
    assert "The peak is during decoding instead of during prefill." in text
    assert "Logits" in {row.title for row in longer.rows}


def test_a_difference_below_two_decimals_keeps_its_sign_and_size():
    rows = [VersusRow("term", "weights", "Weights", GIB + more, GIB) for more in (MIB, -MIB, 0)]
    assert [row.gib_texts[2] for row in rows] == ["+0.001", "\N{MINUS SIGN}0.001", "0.00"]


def test_rows_are_terms_the_total_and_phases_and_sum(catalog):
    view = seen(READING, LEARNING, catalog)
    terms = [row for row in view.rows if row.kind == "term"]
    total = next(row for row in view.rows if row.kind == "total")
    assert sum(row.bytes for row in terms) == total.bytes == view.view.total_bytes
    assert sum(row.other_bytes for row in terms) == total.other_bytes == view.other.total_bytes
    backward = next(row for row in view.rows if row.name == "backward")
    assert (backward.bytes, backward.difference_bytes) == (None, None)
    assert backward.gib_texts[0] == backward.gib_texts[2] == "–"


def test_the_export_has_exact_bytes(catalog):
    view = seen(READING, LEARNING, catalog)
    header, *rows = view.csv_rows()
    assert header == ("kind", "name", "bytes", "other_bytes", "difference_bytes")
    total = next(row for row in rows if row[0] == "total")
    assert total[2:] == tuple(
        map(str, (view.view.total_bytes, view.other.total_bytes, view.view.total_bytes - view.other.total_bytes))
    )
    backward = next(row for row in rows if row[1] == "backward")
    assert (backward[2], backward[4]) == ("", "")


def test_a_plan_that_cannot_run_has_a_reason_and_no_numbers(catalog):
    view = seen(READING, READING.evolve(gpu="tpu-v4"), catalog)
    assert view.sentence == ""
    assert view.rows == ()
    assert "Not supported on" in view.as_text()


def test_terms_that_a_trace_cannot_tell_apart_are_compared_together():
    rows = compare_parts(result(weights=4, logits=2, activations=1), result(weights=4, activations=2.5, buffers=0.5))
    assert [row.title for row in rows] == [
        "Weights and adapters",
        "Activations, logits and temporaries",
        "Buffers and inputs",
        "Total",
    ]
    assert rows[1].difference_bytes == GIB // 2
    assert rows[1].difference_fraction == 0.2
    assert rows[2].difference_fraction == -1
    assert compare_parts(result(kv_cache=1), result(weights=1))[1].difference_fraction is None


def test_the_sentence_has_the_size_and_sign_of_the_difference():
    assert comparison_sentence(result(weights=4), result(weights=4)).startswith("The estimate is exact")
    above = comparison_sentence(result(weights=5), result(weights=4))
    assert above == "The estimate is 25\u2009% above the trace: estimated 5.00\u2009GiB, traced 4.00\u2009GiB."
    below = comparison_sentence(result("loss", weights=3), result(weights=4))
    assert "25\u2009% below" in below
    assert "expected at the loss and found in the backward pass" in below
