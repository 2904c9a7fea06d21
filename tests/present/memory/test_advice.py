"""Memory advice as table rows."""

from planner.plan.advice.advise import CHANGES, advise
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.present.memory.advice import NO_TRACE_ADVICE, advice_row, advice_title, no_advice_sentence
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
    assert nearest.then.endswith("GiB short")
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
