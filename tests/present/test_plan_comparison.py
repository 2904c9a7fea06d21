"""One plan beside another, in words."""

import pytest

from planner.plan.comparison import compare_evaluations
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.present.memory.comparison import versus_view
from planner.present.plan.settings import setting_text, setting_title
from planner.units import GIB
from planner.workload.training import Training
from planner.workload.workload import Inference

LLAMA = ModelChoice(id="meta-llama/Llama-3.1-8B")
READING = Plan(model=LLAMA, gpu="rtx-4090")
LEARNING = Plan(model=LLAMA, workload=Training(method="lora"), gpu="rtx-4090")


def seen(plan, other, catalog):
    evaluation = evaluate(plan, catalog)
    return versus_view(evaluation, compare_evaluations(evaluation, evaluate(other, catalog)), catalog)


def test_both_answers_the_settings_and_the_parts_are_told(catalog):
    view = seen(READING.evolve(workload=Inference(batch=4)), READING, catalog)
    text = view.as_text().replace("\u2009", " ")
    assert view.sentence.startswith("This plan needs ")
    assert " more per card than the other: " in view.sentence
    assert view.settings == ("Batch size: 4 instead of 1",)
    assert view.view.answer in view.as_text()
    assert view.other.answer in view.as_text()
    cache = next(line for line in text.splitlines() if line.startswith("KV cache"))
    assert cache.split()[-3:] == ["2.00", "0.50", "+1.50"]


def test_less_is_told_as_less_and_the_same_as_the_same(catalog):
    assert (
        " less per card than the other: "
        in seen(READING, READING.evolve(workload=Inference(batch=4)), catalog).sentence
    )
    same = seen(READING, READING, catalog)
    assert same.sentence.startswith("Both need ")
    assert same.settings == ("The settings are the same",)
    assert {row.texts[2] for row in same.rows} == {"0.00"}


def test_rows_are_terms_the_total_and_phases_and_sum(catalog):
    view = seen(READING, LEARNING, catalog)
    terms = [row for row in view.rows if row.kind == "term"]
    total = next(row for row in view.rows if row.kind == "total")
    assert sum(row.bytes for row in terms) == total.bytes == view.view.total_bytes
    assert sum(row.other_bytes for row in terms) == total.other_bytes == view.other.total_bytes
    backward = next(row for row in view.rows if row.name == "backward")
    assert (backward.bytes, backward.difference_bytes) == (None, None)
    assert backward.texts[0] == backward.texts[2] == "–"


def test_an_export_has_every_byte(catalog):
    view = seen(READING, LEARNING, catalog)
    header, *rows = view.csv_rows()
    assert header == ("kind", "name", "bytes", "other_bytes", "difference_bytes")
    total = next(row for row in rows if row[0] == "total")
    assert total[2:] == tuple(
        map(str, (view.view.total_bytes, view.other.total_bytes, view.view.total_bytes - view.other.total_bytes))
    )
    backward = next(row for row in rows if row[1] == "backward")
    assert (backward[2], backward[4]) == ("", "")


def test_what_a_card_cannot_run_has_a_reason_and_no_numbers(catalog):
    view = seen(READING, READING.evolve(gpu="tpu-v4"), catalog)
    assert view.sentence == ""
    assert view.rows == ()
    assert "Not supported on" in view.as_text()


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("gpu", None, "none"),
        ("gpu", "1 × rtx-4090 + 2 × tesla-t4", "1 × GeForce RTX 4090 + 2 × Tesla T4"),
        ("gpu", "tesla-t4", "Tesla T4"),
        ("gpu_layers", None, "all"),
        ("loss", None, "default"),
        ("gradient_clipping", True, "yes"),
        ("other_processes_bytes", 2 * GIB, "2.00 GiB"),
        ("sequence_length", 2048, "2,048"),
        ("lora.dropout", 0.05, "5 %"),
        ("optimizer", "adamw", "AdamW"),
        ("compute", "amp-bf16", "BF16 autocast"),
        ("profile", "hf", "Hugging Face Transformers"),
        ("weights", "nf4", "NF4, 64-element blocks"),
    ],
)
def test_a_value_is_told_as_it_is_read(catalog, field, value, words):
    assert setting_text(field, value, catalog.hardware).replace("\u2009", " ") == words


def test_what_is_no_field_keeps_its_name():
    assert setting_title("colour") == "colour"
    assert (setting_title("count"), setting_title("engine.n_ubatch")) == ("Number of cards", "Physical batch size")
