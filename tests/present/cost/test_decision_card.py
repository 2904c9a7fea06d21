"""Contents of the decision card: the decision, or why there is none."""

from dataclasses import replace

import pytest
from cost_samples import QLORA_ON_4090, TODAY

from planner.cost.terms import BuyTerms, CostTerms, DailyHours, RentTerms, Run, Service
from planner.plan.cost import PlanCost, evaluate_cost
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.present.cost.decision import decision_headline, hours_text
from planner.present.cost.decision_card import DecisionView, decision_view, difference_text
from planner.present.format import THIN, money, rounded_money
from planner.workload.workload import Inference


@pytest.fixture(scope="module")
def seen(catalog):
    def see(**changes) -> tuple[DecisionView, PlanCost]:
        evaluation = evaluate(QLORA_ON_4090.evolve(**changes), catalog)
        cost = evaluate_cost(evaluation, catalog, TODAY)
        return decision_view(cost, evaluation, catalog, TODAY), cost

    return see


def test_a_decision_says_what_is_rented_and_what_it_saves(seen):
    view, cost = seen()
    rent, answer = cost.estimate.result.rent, cost.estimate.result.answer
    assert view.headline == "Rent"
    assert view.subject == (
        f"Rent 1 × GeForce RTX 4090 from {rent.provider}, on demand, "
        f"which saves about {rounded_money(answer.saves_usd)} over 5 years"
    )
    assert view.renting_cheaper_fraction == answer.confidence > 0.5
    assert view.rows[-2] == (
        f"Over 5 years, net of resale, discounted at 8{THIN}% a year",
        money(answer.rent_usd),
        money(answer.own_usd),
    )
    assert view.price_dates.startswith("Rental price: ")
    assert view.price_dates.endswith(" · GPU price: no date")
    assert view.price_age == "undated"
    assert all(view.origins)
    assert view.awaits_range
    assert not view.is_blocked


def test_the_purchase_of_busy_cards_says_when_it_pays_off(seen):
    job = DailyHours(hours_per_day=24, days_per_week=7)
    view, cost = seen(cost=CostTerms(job=job, buy=BuyTerms(card_price_usd=500)))
    assert view.headline == "Buy"
    assert view.subject.startswith("Buy 1 × GeForce RTX 4090, which saves ")
    assert view.renting_cheaper_fraction == pytest.approx(1 - cost.estimate.result.answer.confidence)
    assert view.break_even.startswith("Break-even after ")
    assert "GPU price" not in view.price_dates  # one's own price needs no date


def test_a_run_whose_duration_is_estimated_says_how_far_off_cost_and_duration_may_be(seen):
    view, cost = seen(cost=CostTerms(job=Run(amount=50_000_000, unit="tokens")))
    rent = cost.estimate.result.rent
    assert rent.low_usd < rent.usd < rent.high_usd
    assert view.subject.endswith(
        f", on demand: {money(rent.low_usd)} – {money(rent.high_usd)} and "
        f"{hours_text(rent.low_hours)} to {hours_text(rent.high_hours)} in 8 of 10 cases"
    )


def test_a_single_run_is_headed_by_its_cost_and_duration(seen):
    view, cost = seen(cost=CostTerms(job=Run(amount=10)))
    assert view.headline == f"{money(cost.estimate.result.answer.rent_figures.unit_usd)} · 10.0{THIN}h"
    assert "saves" not in view.subject
    assert not view.awaits_range
    assert not any(row.title.startswith("Over ") for row in view.rows)


def test_a_card_of_ones_own_is_used_and_not_bought(seen):
    view, _ = seen(cost=CostTerms(job=DailyHours(hours_per_day=8), buy=BuyTerms(owned=True)))
    assert view.buying_title == "Your own"
    assert view.subject.startswith("Use 1 × GeForce RTX 4090")
    assert "your own" in view.text


def test_a_service_of_several_machines_says_how_many_its_peak_needs(seen):
    terms = CostTerms(job=Service(requests_per_day=3_000_000))
    view, _ = seen(gpu="l40s", workload=Inference(profile="vllm", batch=16), cost=terms)
    assert any(detail.startswith("Peak load needs 17 × L40S: 17 machines if rented") for detail in view.details)


def test_a_plan_that_does_not_fit_has_no_decision(seen):
    view, cost = seen(model=ModelChoice(id="meta-llama/Llama-3.1-70B"))
    assert (view.headline, view.subject, view.is_blocked) == ("Does not fit", cost.blocked.sentence, True)
    assert (view.rows, view.chips, view.renting_cheaper_fraction) == ((), (), None)


def test_a_plan_without_a_card_says_what_is_missing(seen):
    view, _ = seen(gpu=None)
    assert view.needs_hardware
    assert view.summary == "Cost unknown. The plan has no GPU"
    assert not view.is_blocked


def test_a_card_that_nobody_rents_out_can_be_bought(seen):
    view, cost = seen(cost=CostTerms(rent=RentTerms(regions=("nowhere",))))
    assert view.headline == f"{money(cost.estimate.result.own.usd_per_period)} per month"
    assert view.subject.startswith("Buy 1 × GeForce RTX 4090. No current on-demand offer ")


def test_cards_of_ones_own_that_nobody_rents_out_are_used_and_not_bought(seen):
    terms = CostTerms(rent=RentTerms(regions=("nowhere",)), buy=BuyTerms(owned=True))
    view, cost = seen(cost=terms, gpu="rtx-3090", count=2)
    assert view.subject.startswith("Use your own 2 × GeForce RTX 3090. ")
    assert view.buying_title == "Your own"
    hour = money(2 * cost.estimate.result.own.usd_per_gpu_hour)
    assert view.rows == (("Per hour of all 2 GPUs", "–", hour),)


def test_undiscounted_totals_are_the_sum_of_the_months(seen):
    view, _ = seen(cost=CostTerms(job=DailyHours(hours_per_day=8), horizon_years=3, discount_rate=0))
    assert view.rows[2].title == "Over 3 years, net of resale"


def test_an_hour_of_all_cards_is_told_on_both_sides_but_of_no_purchase_for_one_run(seen):
    view, cost = seen(gpu="h100-sxm5-80gb", count=8)
    rent, own = cost.estimate.result.rent, cost.estimate.result.own
    hours = (money(8 * rent.usd_per_gpu_hour), money(8 * own.usd_per_gpu_hour))
    assert view.rows[-1] == ("Per hour of all 8 GPUs, net of resale", *hours)
    once, _ = seen(count=2, cost=CostTerms(job=Run(amount=10)))
    assert not any(row.title.startswith("Per hour") for row in once.rows)


def test_a_card_without_a_price_can_be_rented(seen):
    view, cost = seen(gpu="l40")
    assert view.headline == f"{money(cost.estimate.result.rent.usd)} per month"
    assert "the price of one L40 is unknown" in view.subject


def test_cards_whose_speed_is_unknown_have_no_decision(seen):
    view, cost = seen(gpu="a10g")
    assert (view.headline, view.subject, view.is_blocked) == ("Speed unknown", cost.blocked.sentence, True)


def test_the_text_holds_the_whole_card(seen):
    view, _ = seen()
    lines = view.text.splitlines()
    assert lines[:3] == [view.headline, view.subject, view.confidence]
    assert f"Upfront: renting –, buying {view.rows[0].buying}" in lines
    assert all(detail in view.text for detail in view.details)


def test_cards_without_any_price_have_none(seen):
    view, cost = seen(gpu="b300-sxm-288gb", cost=CostTerms(rent=RentTerms(providers=("nobody",))))
    assert cost.estimate.result.rent is cost.estimate.result.own is None
    assert view.headline == "No price"
    assert view.subject.startswith("No current on-demand offer for the ")


def test_a_close_call_says_which_side_costs_more(seen):
    job = DailyHours(hours_per_day=24, days_per_week=7)
    _, cost = seen(cost=CostTerms(job=job, buy=BuyTerms(card_price_usd=500)))
    answer = cost.estimate.result.answer.evolve(verdict="too-close", saves_usd=20_033.0)
    buys, rents = answer.evolve(decision="buy"), answer.evolve(decision="rent")
    assert difference_text(buys) == ": with these figures, renting costs about $20,000 more over 5 years"
    assert difference_text(rents) == ": with these figures, buying costs about $20,000 more over 5 years"
    assert (
        difference_text(rents.evolve(owned=True))
        == ": with these figures, using your own costs about $20,000 more over 5 years"
    )


def test_what_was_chosen_leads_and_is_compared(seen):
    view, cost = seen(cost=CostTerms(chosen="buy"))
    answer = cost.estimate.result.answer
    assert answer.decision == "rent"
    assert view.headline == "Buy, as you chose"
    assert view.subject == (
        f"Buy 1 × GeForce RTX 4090, which costs about {rounded_money(answer.saves_usd)} more over 5 years than renting"
    )
    assert view.confidence.startswith("Renting is cheaper in ")
    assert decision_headline(cost.estimate.result, "RTX 4090").startswith("Buy, as you chose: renting is cheaper in ")
    view, _ = seen(cost=CostTerms(chosen="rent"))
    assert view.headline == "Rent, as you chose"
    assert ", on demand, which saves " in view.subject
    view, cost = seen(cost=CostTerms(job=Run(amount=10), chosen="buy"))
    assert view.headline.startswith(money(cost.estimate.result.answer.own_figures.unit_usd))
    assert view.subject == "Buy 1 × GeForce RTX 4090, as you chose"
    owned, _ = seen(cost=CostTerms(buy=BuyTerms(owned=True), chosen="buy"))
    assert owned.headline == "Use your own, as you chose"


def test_a_commitment_that_saves_is_offered_once(seen):
    job = DailyHours(hours_per_day=24, days_per_week=7)
    view, _ = seen(gpu="h100-sxm5-80gb", count=8, cost=CostTerms(job=job, chosen="rent"))
    offered = {
        chip.value for chip in (*view.chips, view.commitment) if chip is not None and chip.field == "cost.rent.mode"
    }
    assert offered & {"reserved-1y", "reserved-3y"}
    assert view.commitment is None or view.commitment.text in view.text
    assert view.commitment is None or view.commitment.value not in {chip.value for chip in view.chips}


def test_own_cards_depend_on_the_price_of_electricity(seen):
    view, _ = seen(cost=CostTerms(job=DailyHours(hours_per_day=8), buy=BuyTerms(owned=True)))
    assert "electricity price: " in view.price_dates


def test_a_commitment_that_changes_the_decision_is_a_chip_only(seen):
    rent = RentTerms(offer="gcp-a3-highgpu-8g-us-central1-2026-08-20")
    terms = CostTerms(
        job=DailyHours(hours_per_day=24, days_per_week=7),
        rent=rent,
        buy=BuyTerms(server_price_usd=1_200_000),
        horizon_years=3,
    )
    view, _ = seen(gpu="h100-sxm5-80gb", count=8, cost=terms)
    assert view.headline == "Buy"
    assert view.chips[0].value == "reserved-3y"
    assert view.commitment is None


@pytest.mark.parametrize(
    ("gpu", "count", "owned", "where"),
    [
        ("h100-sxm5-80gb", 1, False, "Buy 1 × H100 SXM5 80 GB as 1/8 of a server"),
        ("h100-sxm5-80gb", 8, False, "Buy 8 × H100 SXM5 80 GB in a server"),
        ("h100-sxm5-80gb", 16, False, "Buy 16 × H100 SXM5 80 GB in 2 servers"),
        ("h100-sxm5-80gb", 1, True, "Use 1 × H100 SXM5 80 GB"),
        ("h100-pcie-80gb", 1, False, "Buy 1 × H100 PCIe 80 GB"),
    ],
)
def test_modules_are_bought_in_servers_and_cards_for_slots_alone(seen, gpu, count, owned, where):
    job = DailyHours(hours_per_day=24, days_per_week=7)
    view, _ = seen(gpu=gpu, count=count, cost=CostTerms(job=job, buy=BuyTerms(card_price_usd=500, owned=owned)))
    assert view.subject.startswith((f"{where}, which saves ", f"{where}. "))


def test_servers_that_are_bought_whole_may_have_more_cards_than_are_needed(seen):
    job = DailyHours(hours_per_day=24, days_per_week=7)
    view, _ = seen(count=35, cost=CostTerms(job=job, buy=BuyTerms(server_price_usd=1_000)))
    assert view.subject.startswith("Buy 35 × GeForce RTX 4090 in 5 servers of 8, paying for 40 GPUs. ")


def test_a_close_call_names_both_sides(seen, catalog):
    _, cost = seen()
    result = cost.estimate.result
    close = result.evolve(answer=result.answer.evolve(verdict="too-close", chosen=None))
    evaluation = evaluate(QLORA_ON_4090, catalog)
    told = decision_view(replace(cost, estimate=replace(cost.estimate, result=close)), evaluation, catalog, TODAY)
    assert told.subject.startswith(f"Rent 1 × GeForce RTX 4090 from {result.rent.provider}, on demand, or buy it")


def test_the_best_mix_of_own_and_rented_cards_is_told(catalog):
    job = Service(requests_per_day=2_000_000, peak_factor=6, output_tokens=100, scales_down=True)
    plan = Plan(
        model=ModelChoice(id="meta-llama/Llama-3.1-8B"),
        workload=Inference(profile="vllm"),
        gpu="l40s",
        cost=CostTerms(job=job),
    )
    evaluation = evaluate(plan, catalog)
    view = decision_view(evaluate_cost(evaluation, catalog, TODAY), evaluation, catalog, TODAY)
    assert any("groups of GPUs needed at the peak" in line for line in view.details)
