"""Memory advice as table rows, and the largest batch as text."""

import pytest

from planner.plan.advice.advise import CHANGES, advise
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.plan.solve import SolveResult
from planner.present.memory.advice import (
    NO_TRACE_ADVICE,
    advice_row,
    advice_title,
    no_advice_sentence,
    solved_sentence,
    solved_text,
    solved_title,
)
from planner.present.memory.verdict import needs_change
from planner.workload.workload import Inference, Training

LLAMA = ModelChoice(id="meta-llama/Llama-3.1-8B")


FEW = tuple(change for change in CHANGES if change.name in ("8-bit AdamW", "full checkpointing"))


NF4 = tuple(change for change in CHANGES if change.name == "weights in NF4")


def rows(plan, catalog, changes=FEW):
    return {row.title: row for row in map(advice_row, advise(plan, catalog, changes))}


def test_a_row_has_savings_and_costs(catalog):
    found = rows(Plan(model=LLAMA, workload=Training(), gpu="h100-sxm5-80gb"), catalog)
    both = found["8-bit AdamW + full checkpointing"]
    assert both.then.startswith("Tight, ")
    assert float(both.saves) > 40
    assert both.price == "about 33\u2009% longer · small risk to quality · needs bitsandbytes"
    assert both.details[0].startswith("8-bit AdamW: Store both moments of AdamW in 8 bits, with one scale per block. ")
    assert not any("Unchanged" in text for text in both.details)  # 8-bit states change the result
    one = Training(optimizer="adafactor")
    kept = rows(Plan(model=LLAMA, workload=one, gpu="h100-sxm5-80gb"), catalog)["Full checkpointing"]
    assert kept.details[-1] == "Unchanged: the mathematical result."
    other = next(row for title, row in found.items() if title.endswith("instead"))
    assert (other.saves, other.cost, other.price) == ("", "another GPU", "another GPU · no risk to quality")


def test_a_faster_program_that_needs_more_memory_saves_none(catalog):
    llama = ModelChoice(id="meta-llama/Llama-3.1-70B")
    plan = Plan(model=llama, workload=Inference(), gpu="h100-sxm5-80gb", count=8)
    row = advice_row(advise(plan, catalog)[0])
    assert row.title.startswith("Run in vLLM: ")
    assert row.saves == ""


def test_advice_that_still_does_not_fit_states_the_missing_memory(catalog):
    found = rows(Plan(model=LLAMA, workload=Training(), gpu="rtx-4090"), catalog)
    nearest = next(row for row in found.values() if row.then.startswith("Does not fit"))
    assert nearest.then.endswith("GiB too much")
    assert nearest.price.startswith("about 33\u2009% longer · small risk to quality")


def test_advice_without_a_card_states_the_memory_needed(catalog):
    assert {row.then.split(" ")[0] for row in rows(Plan(model=LLAMA), catalog, CHANGES).values()} == {"Needs"}


def test_advice_that_the_card_cannot_run_is_marked(catalog):
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.2-3B"), workload=Inference(batch=8), gpu="tesla-k80")
    assert "Not on this GPU" in {row.then for row in rows(plan, catalog, NF4).values()}


def test_the_heading_depends_on_the_verdict(catalog):
    fits = evaluate(Plan(model=LLAMA, gpu="rtx-4090"), catalog).memory
    unsupported = evaluate(Plan(model=LLAMA, gpu="tpu-v5e"), catalog).memory
    assert (needs_change(fits), needs_change(unsupported)) == (False, True)
    assert (advice_title(fits), advice_title(unsupported)) == ("What would save memory or time", "What would help")
    assert no_advice_sentence(fits, traced=True) == NO_TRACE_ADVICE
    assert no_advice_sentence(fits, traced=False) == "What would save memory or time: no known option."


def found(value=None, bounded_by="memory", reason="", asked="batch", prompt=None):
    return SolveResult(asked=asked, value=value, bounded_by=bounded_by, reason=reason, prompt=prompt)


@pytest.mark.parametrize(
    ("surely", "barely", "words"),
    [
        (found(7), found(8), "7 (up to 8 may fit)"),
        (found(7000), found(7000), "7,000"),
        (found(), found(8), "none for sure; a batch of 8 may fit"),
        (found(), found(reason="not even 1 fits"), "none, not even 1 fits"),
        (found(1024, "model"), found(1024, "model"), "1,024, the model's maximum"),
        (found(8), found(4), "8 (4 may be enough)"),
    ],
)
def test_the_value_that_fits_comes_before_the_tight_one(surely, barely, words):
    assert solved_text(surely, barely) == words
    assert solved_sentence(surely, barely) == f"Largest batch that fits: {words}."
    assert solved_title("batch") == "Largest batch that fits"


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("context_length", "none for sure; 2 tokens may fit"),
        ("gpu_layers", "none for sure; 2 layers may fit"),
        ("count", "none for sure; 2 GPUs may be enough"),
    ],
)
def test_a_value_that_may_fit_has_its_unit(asked, words):
    assert solved_text(found(asked=asked), found(2, asked=asked)) == words


def test_the_longest_context_names_the_prompt_that_the_plan_leaves_open():
    longest = found(60_039, asked="context_length", prompt=4_096)
    assert solved_text(longest, longest) == "60,039 tokens, with a prompt of 4,096"


def test_all_layers_include_the_output_layer():
    layers = found(33, "model", asked="gpu_layers")
    assert solved_text(layers, layers) == "33: all 32 and the output layer"
