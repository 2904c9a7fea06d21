"""What a plan without a card could run on, in sentences."""

from datetime import date

import pytest

from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.present.memory import advice
from planner.present.memory.advice import suggestions_without_card
from planner.workload.workload import Inference, Training

LLAMA = ModelChoice(id="meta-llama/Llama-3.1-8B")
TODAY = date(2026, 11, 23)


def said(catalog, workload, gpu=None, model=LLAMA):
    plan = Plan(model=model, workload=workload, gpu=gpu)
    return suggestions_without_card(evaluate(plan, catalog), catalog, TODAY).replace("\u2009", " ")


def test_the_cheapest_card_that_fits_is_named_with_its_price(catalog):
    text = said(catalog, Inference())
    assert text.startswith("The cheapest GPU that fits: Radeon RX 7900 XT, $899 (2022) at launch.")
    assert "checkpointing" not in text


def test_a_price_asked_by_sellers_is_not_called_a_launch_price(catalog, monkeypatch):
    price = advice.buying_prices(catalog, TODAY)["rtx-3090"]
    monkeypatch.setattr(advice, "buying_prices", lambda *_: {"rtx-3090": price})
    assert said(catalog, Inference()).startswith("The cheapest GPU that fits: GeForce RTX 3090, $1,070 (2025).")


def test_full_checkpointing_is_named_where_it_matters(catalog):
    assert said(catalog, Training(method="qlora")).endswith("With full checkpointing: 14.1 GiB, from a 16 GB GPU.")
    assert "checkpointing" not in said(catalog, Training(method="qlora", activation_checkpointing="full"))
    assert "checkpointing" not in said(catalog, Training(micro_batch=1, sequence_length=128))


def test_a_plan_that_fits_no_card_has_no_card_named(catalog):
    text = said(catalog, Training(micro_batch=64, sequence_length=8_192))
    assert text.startswith("With full checkpointing: ")
    assert "card" not in text


@pytest.mark.parametrize("gpu", ["rtx-4090"])
def test_a_plan_with_a_card_needs_no_suggestions(catalog, gpu):
    assert said(catalog, Inference(), gpu) == ""
