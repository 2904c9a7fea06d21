"""The decision card: the verdict with its figures, changes to try, and plans without a decision."""

import json

from PySide6.QtWidgets import QLabel

from planner.cost.terms import BuyTerms, CostTerms, DailyHours, Run, Service
from planner.gui.cost.tab import CostTab
from planner.present.format import THIN
from planner.workload.training import Training
from planner.workload.workload import Inference


def set_job(tab, job, **terms):
    tab.workspace.apply("job", cost=CostTerms(job=job, **terms))


def shown_texts(tab):
    return [label.text() for label in tab.answer.findChildren(QLabel) if label.isVisible()]


def test_the_card_shows_the_verdict_and_confidence_of_the_estimate(tab: CostTab):
    answer = tab.cost.estimate.result.answer
    assert {"rent": "Rent", "buy": "Buy", "too-close": "Too close to call"}[answer.verdict] in shown_texts(tab)
    share = answer.confidence if answer.more_often_cheaper == "rent" else 1 - answer.confidence
    assert tab.answer.view.renting_cheaper_fraction == share


def test_the_figures_of_both_sides_have_their_sources_on_hover(tab: CostTab):
    rows = {row.title: row for row in tab.answer.figures.rows}
    totals = f"Over 5 years, net of resale, discounted at 8{THIN}% a year"
    assert list(rows) == ["Upfront", "Ongoing, per month", totals, "Per GPU-hour, net of resale"]
    for cell in rows[totals].cells:
        assert "202" in cell.origin


def test_the_reasons_are_folded_until_they_are_asked_for(tab: CostTab):
    assert not any("One step takes" in text for text in shown_texts(tab))
    tab.answer.details.set_open(True)
    assert any("One step takes" in text for text in shown_texts(tab))


def test_a_chip_tries_its_change_in_one_undo_step_and_the_decision_changes(tab: CostTab):
    before = tab.workspace.plan
    decision = tab.cost.estimate.result.answer.decision
    at = next(at for at, chip in enumerate(tab.answer.view.chips) if chip.field == "cost.buy.card_price_usd")
    tab.answer.flip_buttons[at].click()
    assert tab.workspace.plan.cost.buy.card_price_usd is not None
    assert tab.cost.estimate.result.answer.decision != decision
    tab.workspace.undo_stack.undo()
    assert tab.workspace.plan == before


def test_a_single_run_leads_with_its_cost_and_duration(tab: CostTab):
    set_job(tab, Run(amount=50_000_000, unit="tokens"))
    result, demand = tab.cost.estimate.result, tab.cost.estimate.demand
    assert tab.answer.view.headline.startswith(f"${result.rent.usd:.2f} · {demand.busy_hours:.2f}")


def test_a_plan_that_does_not_fit_gets_help_instead_of_a_price(tab: CostTab):
    tab.workspace.apply("work", workload=Training(method="full"))
    assert tab.answer.view.headline == "Does not fit"
    assert tab.answer.view.rows == ()
    assert tab.answer.choose_hardware.isVisible()
    assert tab.advice.isVisible()
    assert not any(part.isVisible() for part in (tab.curve, tab.swings, tab.figures, tab.offers))
    tab.workspace.undo_stack.undo()
    assert not tab.advice.isVisible()
    assert tab.curve.isVisible()


def test_cards_of_ones_own_cost_their_electricity(tab: CostTab, qtbot):
    set_job(tab, Run(amount=50_000_000, unit="tokens"), buy=BuyTerms(owned=True))
    view, own = tab.answer.view, tab.cost.estimate.result.own
    assert view.subject == "Use 1 × GeForce RTX 4090"
    assert view.buying_title == "Your own"
    assert view.headline.startswith(f"${own.usd_per_period:.2f} · ")
    qtbot.waitUntil(lambda: any("Faster: renting" in text for text in shown_texts(tab)))
    assert json.loads(tab._json())["faster_rental"]["hours"] < tab.cost.estimate.demand.busy_hours


def test_a_service_names_the_program_that_needs_fewer_cards(tab: CostTab, qtbot):
    tab.workspace.apply("work", workload=Inference(), gpu="h100-sxm5-80gb")
    set_job(tab, Service(requests_per_day=200_000))
    qtbot.waitUntil(lambda: any("vLLM answers 256 and needs 1 ×" in text for text in shown_texts(tab)))
    assert json.loads(tab._json())["batched_service"]["cards"] == 1
    assert tab.answer.follow_note.text() == "Use vLLM"
    tab.answer.follow_note.click()
    assert tab.workspace.plan.workload.profile == "vllm"
    assert tab.cost.estimate.result.machines.cards == 1
    assert not tab.answer.follow_note.isVisible()


def test_a_card_without_offers_is_priced_as_bought(tab: CostTab):
    tab.workspace.apply("card", gpu="rtx-2000-ada")
    set_job(tab, DailyHours(hours_per_day=8))
    assert tab.cost.estimate.result.rent is None
    assert tab.answer.view.headline.endswith(("per month", "No price"))


def test_the_bar_is_painted_in_the_colors_of_the_curves(tab: CostTab, theme):
    for scheme in ("dark", "light"):
        theme.apply(scheme)
        image = tab.answer._bar.grab().toImage()
        middle = image.height() // 2
        assert image.pixelColor(2, middle).name() == theme.color("accent").name()
        assert image.pixelColor(image.width() - 3, middle).name() == theme.color("text").name()


def chip_at(tab, field):
    at = next(at for at, chip in enumerate(tab.answer.view.chips) if chip.field == field)
    return tab.answer.flip_buttons[at], tab.answer.view.chips[at]


def test_a_chip_says_what_it_sets_and_back_restores_the_plan(tab: CostTab):
    before = tab.workspace.plan
    button, chip = chip_at(tab, "cost.buy.card_price_usd")
    assert chip.try_text in button.toolTip()
    assert chip.try_text in button.accessibleName()
    button.click()
    assert f"You are trying {chip.trial_text}." in shown_texts(tab)
    tab.answer.back.click()
    assert tab.workspace.plan == before
    assert not tab.answer.back.isVisible()


def test_back_keeps_what_was_changed_after_the_trial(tab: CostTab):
    button, _ = chip_at(tab, "cost.buy.card_price_usd")
    button.click()
    tab.workspace.apply("years", cost=tab.workspace.plan.cost.evolve(horizon_years=4.0))
    tab.answer.back.click()
    cost = tab.workspace.plan.cost
    assert (cost.buy.card_price_usd, cost.horizon_years) == (None, 4.0)


def test_a_cheaper_commitment_is_a_link(tab: CostTab):
    tab.workspace.apply("cards", gpu="h100-sxm5-80gb", count=8)
    set_job(tab, DailyHours(hours_per_day=24, days_per_week=7), buy=BuyTerms(server_price_usd=900_000))
    chip = tab.answer.view.commitment
    assert chip is not None
    assert tab.answer.commitment.text() == chip.text
    assert chip.terms in shown_texts(tab)
    assert tab.answer.minimumSizeHint().width() < 700, "its terms wrap"
    tab.answer.commitment.click()
    assert tab.workspace.plan.cost.rent.mode == chip.value
