"""Monte Carlo simulation and tornado chart of a rent-or-buy decision."""

from datetime import date

import pytest
from cost_cases import EVERY_DAY, case_of, changed

from planner.cost.rent_or_buy.case import RESALE, USE
from planner.cost.rent_or_buy.uncertainty import SEED, Quantiles, _quantiles, simulate, tornado
from planner.cost.terms import BuyTerms, CostTerms
from planner.plan.catalog import Catalog


def test_the_tornado_is_sorted_and_only_holds_what_moves_something(catalog: Catalog, today: date) -> None:
    case = case_of(catalog, today, CostTerms(job=EVERY_DAY), "rtx-4090", 1)
    swings = tornado(case)
    assert [swing.width_usd for swing in swings] == sorted((swing.width_usd for swing in swings), reverse=True)
    assert all(swing.width_usd > 0 and swing.source for swing in swings)
    names = {swing.name for swing in swings}
    assert {"card_price_usd", RESALE, USE} <= names
    assert "network_share" not in names
    price = next(swing for swing in swings if swing.name == "card_price_usd")
    assert price.low_value < price.value < price.high_value
    assert price.low_saving_usd > price.high_saving_usd


def test_percentiles_are_those_of_all_draws() -> None:
    assert _quantiles([float(value) for value in range(99, -1, -1)]) == Quantiles(p10=10, p50=50, p90=90)


def test_draws_are_always_the_same(catalog: Catalog, today: date) -> None:
    case = case_of(catalog, today, CostTerms(job=EVERY_DAY))
    first, again, other = (simulate(case, draws=200, seed=seed) for seed in (SEED, SEED, 7))
    assert first is not None
    assert other is not None
    assert first == again
    assert first.saving_usd != other.saving_usd
    assert first.saving_usd.p10 < first.saving_usd.p50 < first.saving_usd.p90
    assert len(first.band) == 13
    assert first.band[0].years == 0
    assert first.band[-1].own_usd == first.own_usd


def test_draws_without_uncertainty_are_the_answer(catalog: Catalog, today: date) -> None:
    case = case_of(catalog, today, CostTerms(job=EVERY_DAY, buy=BuyTerms(resale_share=0.2, loan_fraction=0.5)))
    certain = changed(case, **case.central)
    found = simulate(certain, draws=3)
    assert found is not None
    flows = certain.cash_flows()
    assert found.own_usd.p50 == pytest.approx(flows.own_usd(5))
    assert found.rent_usd.p90 == pytest.approx(flows.rent_usd(5))
    assert found.owning_cheaper_fraction == (flows.saving_usd(5) > 0)


def test_draws_stop_when_nobody_wants_them(catalog: Catalog, today: date) -> None:
    case = case_of(catalog, today, CostTerms(job=EVERY_DAY))
    asked = []

    def cancelled() -> bool:
        asked.append(True)
        return len(asked) == 3

    assert simulate(case, cancelled=cancelled) is None
    assert len(asked) == 3
