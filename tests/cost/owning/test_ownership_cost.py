"""The explained cost of owning: its terms, its accounting view and its notes."""

from dataclasses import replace
from datetime import date

import pytest
from cost_cases import estimate, two_cards

from planner.cost.demand import demand_of
from planner.cost.estimate import CostEstimate
from planner.cost.owning.ownership_cost import accounting_servers, accounting_utilization, own_cost
from planner.cost.rent_or_buy.case import RESALE
from planner.cost.rent_or_buy.uncertainty import simulate
from planner.cost.result import OwnCost
from planner.cost.terms import BuyTerms, CostTerms, DailyHours, RentTerms, Run, Service
from planner.plan.catalog import Catalog


def owned(found: CostEstimate) -> OwnCost:
    assert found.result.own is not None
    return found.result.own


def test_the_terms_of_two_cards_add_up_by_hand(catalog: Catalog) -> None:
    case = two_cards()
    demand = demand_of(DailyHours(hours_per_day=8), None)
    own = own_cost(case, case.cash_flows(), demand, CostTerms(), catalog.hardware.gpu("l40s"), None, catalog.cost)
    assert {term.name: term.usd for term in own.upfront} == {"cards": 20_000, "host": 10_000}
    # 1.2 kW with a PUE of 1.25 at 0.20 USD: 0.30 USD an hour at full load, of which 30 % at rest and 80 % at work.
    energy = 0.3 * (8_766 * 0.3 + 2_000 * 0.5) / 12
    assert {term.name: term.usd for term in own.monthly} == {"energy": pytest.approx(energy)}
    assert (own.monthly[0].low_usd, own.monthly[0].high_usd) == pytest.approx((energy, energy))
    assert (own.upfront[0].low_usd, own.upfront[0].high_usd) == (10_000, 40_000)
    # A quarter of the cards' price and of half the host's comes back after four years of 2,000 hours.
    assert own.resale_usd == pytest.approx(25_000 / 4)
    assert own.present_value_usd == pytest.approx(30_000 + 48 * energy - 6_250)
    assert own.usd_per_gpu_hour == pytest.approx(own.present_value_usd / (4 * 2_000 * 2))
    assert own.oldest_price_date == "2026-10-01"


def test_the_books_take_power_at_work_as_full_power() -> None:
    case = two_cards()
    books = accounting_servers(case, case.cash_flows(), CostTerms())
    assert (books.capex_usd, books.servers, books.gpus) == (30_000, 1, 2)
    assert books.server_kilowatts == pytest.approx(2 * 0.5 * 1.2 * 0.8)
    assert books.idle_power_fraction == pytest.approx(0.3 / 0.8)
    assert books.tariff_usd_per_kwh == 0.2
    thrifty = replace(case, setup=case.setup.evolve(switched_off_when_idle=True, colocation_power="included"))
    books = accounting_servers(thrifty, thrifty.cash_flows(), CostTerms())
    assert (books.idle_power_fraction, books.tariff_usd_per_kwh) == (0, 0)


def test_the_books_use_no_more_hours_than_there_are() -> None:
    case = two_cards()
    assert accounting_utilization(case, case.cash_flows()) == pytest.approx(2_000 / 8_766)
    busy = replace(case, busy_hours_per_year=10_000)
    assert accounting_utilization(busy, busy.cash_flows()) == 1


def test_own_figures_are_certain_and_theirs(catalog: Catalog, today: date) -> None:
    buy = BuyTerms(
        card_price_usd=20_000,
        host_factor=1.5,
        server_power_factor=1.5,
        resale_share=0.3,
        tariff_usd_per_kwh=0.1,
        network_usd=1_000,
        tax_fraction=0.19,
        insurance_fraction_per_year=0.01,
        shipping_usd=10,
        install_usd=10,
    )
    found = estimate(catalog, today, CostTerms(buy=buy, rent=RentTerms(price_drift_per_year=0.05)))
    own = owned(found)
    assert found.case is not None
    assert (
        own.resale_usd
        == own.low_resale_usd
        == own.high_resale_usd
        == pytest.approx((160_000 + (80_000 + 1_000) / 2) * 0.3)
    )
    assert RESALE not in found.case.uncertain
    assert {term.name for term in own.upfront if term.certainty == "yours"} >= {"cards", "host", "tax"}
    assert not any("not counted" in note for note in own.notes)


def test_only_prices_are_quoted_and_what_is_calculated_is_derived(catalog: Catalog, today: date) -> None:
    own = owned(estimate(catalog, today, CostTerms(), gpu="rtx-4090", count=1))
    certainties = {term.name: term.certainty for term in (*own.upfront, *own.monthly)}
    assert certainties["cards"] == "quoted"
    assert {name for name, certainty in certainties.items() if certainty == "quoted"} == {"cards"}
    assert certainties["energy"] == "derived"


def test_electricity_within_colocation_costs_nothing_more(catalog: Catalog, today: date) -> None:
    included = BuyTerms(place="colocation", colocation_usd_per_kw_month=200, colocation_power="included")
    own = owned(estimate(catalog, today, CostTerms(buy=included)))
    assert "energy" not in {term.name for term in own.monthly}
    assert own.books.energy_usd == 0
    assert own.carbon.energy_kwh > 0
    assert "electricity is included in the colocation price" in own.notes[0]


def test_what_a_place_has_to_say_is_said(catalog: Catalog, today: date) -> None:
    notes = owned(estimate(catalog, today, CostTerms(buy=BuyTerms(place="colocation")))).notes
    assert "electricity is metered" in notes[0]
    assert "may contain cooling, which the PUE counts too" in notes[1]


def test_cards_that_are_switched_off_draw_nothing_at_rest(catalog: Catalog, today: date) -> None:
    on, off = (
        owned(estimate(catalog, today, CostTerms(buy=BuyTerms(switched_off_when_idle=switched))))
        for switched in (False, True)
    )
    assert off.carbon.energy_kwh < on.carbon.energy_kwh
    assert off.books.energy_usd < on.books.energy_usd


def test_a_loan_at_the_discount_rate_changes_nothing(catalog: Catalog, today: date) -> None:
    plain, borrowed = (
        owned(estimate(catalog, today, CostTerms(buy=BuyTerms(loan_fraction=share, loan_rate=0.08))))
        for share in (0.0, 0.6)
    )
    assert borrowed.present_value_usd == pytest.approx(plain.present_value_usd)
    assert (plain.borrowed_usd, plain.loan_usd_per_month) == (0, 0)
    assert borrowed.borrowed_usd == pytest.approx(0.6 * borrowed.upfront_usd)
    assert borrowed.loan_usd_per_month * 36 > borrowed.borrowed_usd


def test_a_card_of_ones_own_costs_only_the_electricity_of_its_work(catalog: Catalog, today: date) -> None:
    buy = BuyTerms(place="colocation", owned=True, tariff_usd_per_kwh=0.4, pue=1.0, loan_fraction=0.5)
    found = estimate(catalog, today, CostTerms(job=Run(amount=10), buy=buy), "rtx-3090", 1)
    own = owned(found)
    # 350 W, 1.8 for the machine, 75 % of that in training: 0.4725 kW for ten hours at 0.40 USD.
    assert own.usd_per_period == pytest.approx(0.4725 * 10 * 0.4)
    assert (own.upfront_usd, own.resale_usd, own.upfront) == (0, 0, ())
    assert [term.name for term in own.monthly] == ["energy"]
    assert own.sale_today_usd == 1_070
    assert any("might sell for 1,070 USD (second-hand price of 2025-03-04)" in note for note in own.notes)
    assert found.result.answer is not None
    assert found.result.answer.owned
    assert found.result.answer.flips_at_card_price_usd is None


def test_a_service_on_own_cards_pays_for_them_around_the_clock(catalog: Catalog, today: date) -> None:
    service = Service(requests_per_day=17_280)  # a tenth of what one group answers
    bought, own, resting = (
        owned(estimate(catalog, today, CostTerms(job=service, buy=buy)))
        for buy in (BuyTerms(), BuyTerms(owned=True), BuyTerms(owned=True, switched_off_when_idle=True))
    )
    assert own.carbon.energy_kwh == pytest.approx(bought.carbon.energy_kwh)
    (energy,) = own.monthly
    assert energy.usd == pytest.approx(next(term.usd for term in bought.monthly if term.name == "energy"))
    assert energy.formula == "P · PUE · e · (730.5 · i + h · (a − i))"
    assert "around the clock" in own.notes[0]
    assert resting.monthly[0].usd < energy.usd
    assert resting.monthly[0].formula == "P · PUE · e · h · a"
    assert "of the hours of work" in resting.notes[0]


def test_a_purchase_for_one_run_pays_for_the_hours_of_that_run(catalog: Catalog, today: date) -> None:
    terms = CostTerms(job=Run(amount=10), buy=BuyTerms(place="colocation"))
    found = estimate(catalog, today, terms)
    own, answer = owned(found), found.result.answer
    assert answer is not None
    discounted_resale = own.resale_usd / 1.08**5
    assert own.usd_per_period == pytest.approx(own.upfront_usd - discounted_resale + own.monthly_cash_usd)
    assert answer.own_usd == pytest.approx(own.usd_per_period)
    assert found.result.rent is not None
    assert answer.rent_usd == pytest.approx(found.result.rent.usd)
    assert answer.saves_usd == pytest.approx(own.usd_per_period - found.result.rent.usd)
    formulas = {term.name: term.formula for term in own.monthly}
    assert formulas["operations"] == "C · o · h / 8766"
    assert formulas["colocation"] == "P · k · h / 730.5"
    simulation = simulate(found.case, draws=50) if found.case else None
    assert simulation is not None
    assert simulation.rent_usd.p10 <= answer.rent_usd <= simulation.rent_usd.p90
