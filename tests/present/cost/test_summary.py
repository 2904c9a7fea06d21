"""Renting beside owning, in sentences."""

import dataclasses
import re
from datetime import date

import pytest
from cost_samples import TODAY, decision_to_rent, estimated

from planner.cost.carbon import footprint
from planner.cost.demand import Throughput
from planner.cost.energy import Region
from planner.cost.estimate import hybrid_of_plan
from planner.cost.figure import Figure
from planner.cost.rent_or_buy.cash_flows import ALWAYS_CHEAPER, FIXED_RENT, NEVER_DEARER, RENT_CHEAPER
from planner.cost.rent_or_buy.uncertainty import Quantiles, simulate
from planner.cost.result import BreakEven, MoneySymbol, MoneyTerm
from planner.cost.terms import BuyTerms, CostTerms, DailyHours, RentTerms, Run, Service
from planner.present.cost.summary import (
    UsedPrice,
    billing_phrase,
    break_even_sentence,
    carbon_sentence,
    chance_sentence,
    cost_terms,
    dates_sentence,
    hours_phrase,
    hybrid_sentence,
    money_phrase,
    own_sentence,
    rent_sentence,
    running_period,
    saving_range_sentence,
    time_axis,
    used_price,
)
from planner.present.format import THIN, money


def plain(text: str) -> str:
    """Return `text` with its thin spaces as plain ones, which can be told apart in a test."""
    return text.replace(THIN, " ")


def test_the_oldest_price_is_told_with_what_has_no_date():
    assert dates_sentence(decision_to_rent(undated=("cards", "cards", "licence")), TODAY) == (
        "Oldest price: 10 November 2026, 12 days old, recent. Prices without a date: GPUs and licenses."
    )
    paid = MoneyTerm("energy", 5.0, "t", (MoneySymbol("t", 5, "USD", "me", "2026-11-10"),), "me", "quoted", None, 5, 5)
    assert dates_sentence(decision_to_rent(undated=()), TODAY, (paid,)) == (
        "Oldest price: electricity, 10 November 2026, 12 days old, recent."
    )
    assert dates_sentence(decision_to_rent(oldest_price_date=None, undated=()), TODAY) == ""


def test_the_break_even_is_told_in_hours_time_and_use():
    point = BreakEven(gpu_hours=1_430.0, utilization_fraction=0.41, years=2.0)
    assert plain(break_even_sentence(point, 3)) == (
        "Buying pays off above 1,430 GPU-hours (41 % utilization) in 3 years. At the planned use, it does after "
        "2 years, if the GPUs are sold then."
    )
    never = point.evolve(utilization_fraction=None, years=None, years_reason="renting is cheaper to the end")
    assert break_even_sentence(never, 3) == (
        "Buying pays off above 1,430 GPU-hours in 3 years. At the planned use, renting is cheaper to the end."
    )
    assert break_even_sentence(never.evolve(years_reason=None), 3).endswith(" At the planned use, it does not.")
    none = BreakEven(gpu_hours=None, utilization_fraction=None, years=None, reason="rent is lower than power")
    assert break_even_sentence(none, 3) == "No break-even: rent is lower than power."
    assert break_even_sentence(none.evolve(reason=None), 3) == ""
    free = none.evolve(reason=ALWAYS_CHEAPER)
    assert break_even_sentence(free, 3) == "Owning is cheaper even without any use."
    fixed = none.evolve(reason=FIXED_RENT, years=0.3)
    assert break_even_sentence(fixed, 3) == ""  # the time after which owning pays is told with the totals
    assert break_even_sentence(fixed.evolve(years=None, years_reason=RENT_CHEAPER), 3) == (
        "No break-even: renting is still cheaper at the end of the compared period."
    )
    assert break_even_sentence(fixed.evolve(years=None, years_reason=NEVER_DEARER), 3) == (
        "Owning is cheaper from the first day."
    )
    assert break_even_sentence(never, 3, "using your own").startswith("Using your own pays off above 1,430 GPU-hours ")
    assert break_even_sentence(None, 3) == ""


def test_rent_says_where_how_long_and_in_which_currency(catalog):
    rent = estimated(catalog, Run(amount=1e9, unit="tokens")).result.rent
    told = rent_sentence(rent)
    assert told.startswith(f"Rented from {rent.provider} ({rent.region}), on demand: ${rent.usd:,.0f} ($")
    assert "hours, $" in told
    other = rent.evolve(region=None, billed_currency="EUR", instances=3, low_usd=rent.usd, high_usd=rent.usd)
    assert f"({'unknown region'}), on demand, 3 machines, billed in EUR: ${rent.usd:,.0f} for " in rent_sentence(other)


def test_owning_says_what_comes_back(catalog):
    found = estimated(catalog)
    told = own_sentence(found.result.own, found.demand)
    assert re.match(r"Bought: \$[\d,]+ upfront plus \$[\d.,]+ per month, minus \$[\d,]+ \(\$.* – \$.*\) resale\.", told)
    assert "per month, or $" in told.split("resale.")[1]
    run = estimated(catalog, Run(amount=1e9, unit="tokens"))
    assert own_sentence(run.result.own, run.demand).endswith(" per run.")


def test_a_few_words_for_the_plan_bar(catalog):
    run = estimated(catalog, Run(amount=3.6e6, unit="tokens"))
    assert plain(hours_phrase(run)) == "60.0 min"
    assert money_phrase(run) == f"{money(run.result.rent.usd)} per run, rented"
    month = estimated(catalog)
    assert hours_phrase(month) == ""
    assert plain(money_phrase(month)) == f"{money(month.result.rent.usd)} per month (174 h), rented"
    bought = "per month, bought (purchase included)"
    busy = estimated(catalog, DailyHours(hours_per_day=24, days_per_week=7), buy=BuyTerms(card_price_usd=1_000))
    assert money_phrase(busy) == f"{money(busy.result.own.usd_per_period)} {bought}"
    chosen = estimated(catalog, chosen="buy")
    assert money_phrase(chosen) == f"{money(chosen.result.own.usd_per_period)} {bought}"
    assert money_phrase(None) == hours_phrase(None) == ""
    unrented = estimated(catalog, rent=RentTerms(mode="spot", providers=("Nobody",)))
    assert money_phrase(unrented) == f"{money(unrented.result.own.usd_per_period)} {bought}"
    unpriced = dataclasses.replace(unrented, result=unrented.result.evolve(own=None))
    assert money_phrase(unpriced) == ""


def test_the_chance_is_told_of_the_cheaper_way(catalog):
    rented = plain(chance_sentence(simulate(estimated(catalog).case)))
    assert re.fullmatch(r"Renting is cheaper in \d+ % of 2,000 simulated cases\.", rented)
    busy = estimated(catalog, DailyHours(hours_per_day=24, days_per_week=7), buy=BuyTerms(card_price_usd=1_000))
    assert chance_sentence(simulate(busy.case)).startswith("Owning is cheaper in ")


def test_the_range_of_the_saving_is_told_of_the_side_that_the_headline_names(catalog):
    renting = estimated(catalog)
    assert re.fullmatch(
        r"In 8 of 10 simulated cases, renting costs \$[\d,]+ to \$[\d,]+ less than buying\.",
        saving_range_sentence(simulate(renting.case), renting.result.answer),
    )
    either = simulate(renting.case).evolve(saving_usd=Quantiles(p10=-273_957, p50=-1_000, p90=28_907))
    assert saving_range_sentence(either, renting.result.answer) == (
        "In 8 of 10 simulated cases, renting costs from $28,900 more to $274,000 less than buying."
    )
    dearer = either.evolve(saving_usd=Quantiles(p10=100, p50=200, p90=300))
    assert saving_range_sentence(dearer, renting.result.answer).endswith(
        " renting costs $100 to $300 more than buying."
    )
    busy = estimated(catalog, DailyHours(hours_per_day=24, days_per_week=7), buy=BuyTerms(card_price_usd=1_000))
    told = saving_range_sentence(simulate(busy.case), busy.result.answer)
    assert re.search(r"cases, buying costs \$[\d,]+ to \$[\d,]+ less than renting\.$", told)
    own = busy.result.answer.evolve(owned=True)
    assert saving_range_sentence(simulate(busy.case), own).startswith(
        "In 8 of 10 simulated cases, using your own costs $"
    )


def test_carbon_names_region_source_and_year():
    grams = Figure(value=400.0, source="a grid report (table 3)", date="2024")
    region = Region(code="DE", name="Germany", household=None, industrial=None, carbon_grams_per_kwh=grams)
    pue = Figure(value=1.5, source="a survey")
    told = plain(carbon_sentence(footprint(region, 10.0, pue), "Owned in Germany", "month"))
    assert told == (
        "Owned in Germany: 10 kWh of electricity per month, cooling included: 4 kg of CO₂ at 400 g per kWh "
        "(a grid report, 2024)."
    )
    undated = region.evolve(carbon_grams_per_kwh=grams.evolve(date=None))
    assert carbon_sentence(footprint(undated, 10.0, pue), "x", "run").endswith("(a grid report).")
    dark = region.evolve(carbon_grams_per_kwh=None)
    assert carbon_sentence(footprint(dark, 10.0, pue), "x", "run").endswith("; its carbon emissions are unknown.")


def test_owning_some_and_renting_the_rest(catalog):
    job = Service(requests_per_day=2_000_000, peak_factor=6, output_tokens=100, scales_down=True)
    pace = Throughput(samples_per_second=5)
    terms = CostTerms(job=job)
    hybrid = hybrid_of_plan(estimated(catalog, job, pace=pace), terms, pace)
    mixed = hybrid.evolve(best=hybrid.mixes[2])
    told = plain(hybrid_sentence(mixed, 5))
    most = len(hybrid.mixes) - 1
    assert told.startswith(f"Best mix: buy 2 of the {most} groups of GPUs needed at the peak, which handle ")
    assert told.endswith("for buying all.")
    assert "none is worth buying" in hybrid_sentence(hybrid.evolve(best=hybrid.mixes[0]), 5)
    assert f"All {most} groups" in hybrid_sentence(hybrid.evolve(best=hybrid.mixes[-1]), 5)
    single = hybrid.evolve(mixes=hybrid.mixes[:2], best=hybrid.mixes[1])
    assert hybrid_sentence(single, 5).startswith("The group of GPUs needed at the peak is worth buying")
    always = mixed.evolve(always_on=True)
    assert "rent the others day and night" in hybrid_sentence(always, 5)
    assert hybrid_sentence(always.evolve(best=hybrid.mixes[0]), 5) == ""


def test_the_terms_of_a_comparison_are_those_of_both_sides(catalog):
    result = estimated(catalog).result
    rent, own = result.rent, result.own
    assert cost_terms(result) == (*rent.terms, *own.upfront, *own.monthly)
    assert cost_terms(result.evolve(own=None)) == rent.terms
    assert cost_terms(result.evolve(rent=None)) == (*own.upfront, *own.monthly)


def test_what_is_billed_is_said_with_where_it_is_from(catalog):
    rent = estimated(catalog).result.rent.evolve(billing_increment_seconds=1, states_increment=True)
    assert billing_phrase(rent) == "billed by the second"
    assert billing_phrase(rent.evolve(billing_increment_seconds=3_600, states_increment=False)) == (
        "billed by the hour (assumed)"
    )
    assert plain(billing_phrase(rent.evolve(billing_increment_seconds=600))) == "billed by the 10.0 min"
    assert "billed by the second" in rent_sentence(rent)
    assert "billed by" not in rent_sentence(rent.evolve(mode="reserved-1y"))


def test_the_price_that_counts_is_that_of_the_cheaper_side(catalog):
    rented = estimated(catalog).result
    assert used_price(rented) == UsedPrice("rental price", rented.rent.oldest_price_date, "quoted")
    always = DailyHours(hours_per_day=24, days_per_week=7)
    bought = estimated(catalog, always, buy=BuyTerms(card_price_usd=1_000)).result
    assert used_price(bought) == UsedPrice("GPU price", None, "yours")
    own = estimated(catalog, buy=BuyTerms(owned=True)).result
    electricity = used_price(own)
    assert electricity.name == "electricity price"
    assert electricity.day is not None
    assert used_price(own.evolve(rent=None, answer=None)) == electricity
    assert used_price(own.evolve(rent=None, own=None, answer=None)) is None
    assert used_price(own.evolve(own=own.own.evolve(monthly=()))).name == "rental price"


@pytest.mark.parametrize(
    ("day", "certainty", "age", "sentence"),
    [
        ("2025-01-02", "quoted", "3 days old", "GPU price used: 3 days old, fresh"),
        (None, "quoted", "no date", "The GPU price used has no date"),
        (None, "assumed", "launch price", "The GPU price used is the launch price"),
        (None, "yours", "no date", "The GPU price used is your own"),
    ],
)
def test_the_age_of_a_price_is_said_also_if_it_has_no_date(day, certainty, age, sentence):
    price = UsedPrice("GPU price", day, certainty)
    assert price.age_text(date(2025, 1, 5)) == age
    assert price.sentence(date(2025, 1, 5)) == sentence


def test_running_costs_are_those_of_a_month_or_of_the_only_run(catalog):
    assert running_period(estimated(catalog).demand) == "month"
    assert running_period(estimated(catalog, Run(amount=10)).demand) == "run"


def test_less_than_two_years_are_counted_in_months():
    assert time_axis(0.25) == ("months", 12)
    assert time_axis(2.0) == ("years", 1)
